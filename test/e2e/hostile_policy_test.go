package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// updated is a policy for a Deployment of its own name, see held.
const updated = "{apiVersion: refit.dev/v1alpha1, kind: InPlaceUpdatePolicy, metadata: {name: $NAME}, spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: $NAME}, $SPEC}}"

// policyFor is a policy for a workload, which need not exist.
func policyFor(name, spec string) string {
	return "{apiVersion: refit.dev/v1alpha1, kind: InPlaceUpdatePolicy, spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: " + name + "}" + spec + "}}"
}

// deployment has pods that run on no node.
func deployment(replicas int, annotation string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: $NAME}
spec:
  replicas: %d
  selector: {matchLabels: {attack: $NAME}}
  template:
    metadata: {labels: {attack: $NAME}, annotations: {example.com/x: %s}}
    spec:
      nodeSelector: {refit.dev/no-such-node: "true"}
      containers: [{name: app, image: a, env: [{name: A, value: "1"}], resources: {requests: {cpu: 1m}}}]
`, replicas, annotation)
}

// held is an attack by a Deployment with policies, and what is done with the Deployment and each of the policies after that.
func held(workload string, policies []string, then func(ctx context.Context, a attacker, workload *unstructured.Unstructured, policies []*unstructured.Unstructured) error) attack {
	return attack{do: func(ctx context.Context, a attacker) error {
		name := fmt.Sprintf("%s-%d", strings.ToLower(a.word()), a.round)
		var made []*unstructured.Unstructured
		for i, manifest := range append([]string{workload}, policies...) {
			object, err := a.parse(strings.ReplaceAll(manifest, "$NAME", name))
			if err != nil {
				return err
			}
			if i > 1 {
				object.SetName(fmt.Sprintf("%s-%d", name, i))
			}
			if err := a.answered(ctx, func(ctx context.Context) error { return a.Create(ctx, object) }); err != nil {
				return fmt.Errorf("create %s: %w", object.GetKind(), err)
			}
			made = append(made, object)
		}
		return then(ctx, a, made[0], made[1:])
	}}
}

// patches writes to an object again and again; what is refused because somebody else has written it is no end.
func (a attacker) patches(ctx context.Context, object *unstructured.Unstructured, n int, patch func(i int) string) error {
	for i := range a.few(n) {
		err := a.answered(ctx, func(ctx context.Context) error { return a.Patch(ctx, object.DeepCopy(), merge(patch(i))) })
		if err != nil && (errors.Is(err, errUnanswered) || !refusal(err) && !apierrors.IsConflict(err)) {
			return fmt.Errorf("write %s %d times: %w", object.GetKind(), i+1, err)
		}
	}
	return nil
}

// templates changes the template of a workload in a loop: what can be changed in a running pod, what cannot be, and what it was before.
func templates(n int) func(context.Context, attacker, *unstructured.Unstructured, []*unstructured.Unstructured) error {
	return func(ctx context.Context, a attacker, workload *unstructured.Unstructured, _ []*unstructured.Unstructured) error {
		return a.patches(ctx, workload, n, func(i int) string {
			return []string{
				fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"example.com/x":"%d"}}}}}`, i),
				fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"%s:%d"}]}}}}`, nothing, i),
				fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"a","env":[{"name":"A","value":"%d"}]}]}}}}`, i),
				`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"a","resources":{"limits":{"cpu":"9223372036854775807m"}}}]}}}}`,
			}[i%4]
		})
	}
}

// attacksByPolicies are InPlaceUpdatePolicies, for workloads of the attacker and of others.
func attacksByPolicies() map[string]attack {
	const large = "2147483647"
	step := func(pods, pause string) string { return "{pods: " + pods + ", pause: {seconds: " + pause + "}}, " }
	all := []string{
		"maxUnavailable: " + large + ", partition: " + large + ", minReadySeconds: " + large + ", drainSeconds: 86400, progressDeadlineSeconds: " + large,
		"maxUnavailable: 100%, steps: [" + strings.Repeat(step(large, large), 16) + "]",
	}
	changing := func(ctx context.Context, a attacker, workload *unstructured.Unstructured, policies []*unstructured.Unstructured) error {
		return templates(4*fewerThings)(ctx, a, workload, policies)
	}
	spec := func(text string) string { return strings.Replace(updated, "$SPEC", text, 1) }
	return map[string]attack{
		"policy in another namespace":         object("{apiVersion: refit.dev/v1alpha1, kind: InPlaceUpdatePolicy, metadata: {namespace: $OTHER}, spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: bystander}}}", "cannot create"),
		"policy for a name of the other":      object(policyFor("bystander", "")),
		"policy by a path":                    object(policyFor("../$OTHER/bystander", "")),
		"policy for a unicode name":           object(policyFor(`"\u202e\u0000bystander"`, "")),
		"policy for refit-daemon":             object("{apiVersion: refit.dev/v1alpha1, kind: InPlaceUpdatePolicy, metadata: {namespace: refit-system}, spec: {targetRef: {apiVersion: apps/v1, kind: DaemonSet, name: refit-daemon}}}", "cannot create"),
		"policy for a Pod":                    object(strings.Replace(policyFor("a", ""), "kind: Deployment", "kind: Pod", 1), "must be a Deployment"),
		"policy with a number that is no int": object(policyFor("a", ", maxUnavailable: 99999999999999999999%"), "maxUnavailable"),
		"policy of 17 steps":                  object(policyFor("a", ", steps: ["+strings.Repeat(step("1", "1"), 17)+"]"), "spec.steps"),
		"policy with a step of minus one":     object(policyFor("a", ", steps: ["+step("-1", "-1")+"]"), "spec.steps"),
		"policy with a long name":             object(strings.Replace(policyFor("a", ""), "spec:", "metadata: {name: "+strings.Repeat("a", 240)+"}, spec:", 1), "at most 200 characters"),
		"policy of 200 kB":                    object(strings.Replace(policyFor("a", ""), "spec:", "metadata: {annotations: {example.com/x: $LONG}}, spec:", 1)),
		"1,000 policies for no workload":      cheap(100, policyFor("none", "")),
		"policy for 0 pods":                   held(deployment(0, "a"), []string{spec("")}, changing),
		"policy with large numbers":           held(deployment(2, "a"), []string{spec(all[0])}, changing),
		"policy with large steps":             held(deployment(2, "a"), []string{spec(all[1])}, changing),
		"policy for a template of 200 kB":     held(deployment(1, "$LONG"), []string{spec("")}, changing),
		"policy for a template in unicode":    held(deployment(1, `"\u202e\U0001F4A3"`), []string{spec("")}, changing),
		"two policies for one workload":       held(deployment(2, "a"), []string{spec(""), spec("podUpdatePolicy: InPlaceOnly, failurePolicy: Undo")}, changing),
		"policy for a template in a loop":     held(deployment(2, "a"), []string{spec("failurePolicy: Undo, progressDeadlineSeconds: 1")}, templates(100)),
		"policy that flaps": held(deployment(2, "a"), []string{spec("")}, func(ctx context.Context, a attacker, workload *unstructured.Unstructured, policies []*unstructured.Unstructured) error {
			if err := templates(fewerThings)(ctx, a, workload, policies); err != nil {
				return err
			}
			return a.patches(ctx, policies[0], 100, func(i int) string { return fmt.Sprintf(`{"spec":{"paused":%t}}`, i%2 == 0) })
		}),
		"policy that is deleted in the middle": held(deployment(2, "a"), []string{spec("deletionPolicy: Release")}, func(ctx context.Context, a attacker, workload *unstructured.Unstructured, policies []*unstructured.Unstructured) error {
			return errors.Join(templates(fewerThings)(ctx, a, workload, policies), a.Delete(ctx, policies[0]), templates(fewerThings)(ctx, a, workload, policies))
		}),
		"marks of a hold by hand": held(deployment(1, "a"), nil, func(ctx context.Context, a attacker, workload *unstructured.Unstructured, _ []*unstructured.Unstructured) error {
			err := a.Patch(ctx, workload.DeepCopy(), merge(`{"metadata":{"labels":{"refit.dev/held":"true","refit.dev/hold-uid":"x"},"annotations":{"refit.dev/held":"x"}},"spec":{"paused":true}}`))
			return errors.Join(err, templates(fewerThings)(ctx, a, workload, nil))
		}),
	}
}

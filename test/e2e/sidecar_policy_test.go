package e2e_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestTokenOfASidecarWritesNothingOfAnotherPod plays a sidecar that has been taken over.
func TestTokenOfASidecarWritesNothingOfAnotherPod(t *testing.T) {
	t.Parallel()
	s := newSidecarFixture(t)
	plain := func(name string) *corev1.Pod {
		pod := s.podOf(name, shell("app", obedient))
		pod.Spec.ServiceAccountName = "refit-sidecar"
		return s.start(pod)
	}
	mine, others := plain("mine"), plain("others")
	s.ask("r-mine", "mine/app")
	s.ask("r-others", "others/app")
	myRequest, othersRequest := s.succeeded("r-mine"), s.succeeded("r-others")
	server := func(name string) client.Object {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("game.kruise.io/v1alpha1")
		u.SetKind("GameServer")
		u.SetNamespace(s.namespace)
		u.SetName(name)
		s.check(s.Create(t.Context(), u.DeepCopy()), "make GameServer")
		return u
	}
	myServer, othersServer := server("mine"), server("others")
	bound := s.as(s.token(s.namespace, "refit-sidecar", mine))
	unbound := s.as(s.token(s.namespace, "refit-sidecar", nil))

	label := merge(`{"metadata":{"labels":{"a":"b"}}}`)
	note := merge(`{"status":{"message":"by hand"}}`)
	opsState := merge(`{"spec":{"opsState":"Kill"}}`)
	copied := func(o client.Object) client.Object { return o.DeepCopyObject().(client.Object) }
	status := func(c client.Client, o client.Object, patch client.Patch) func(context.Context) error {
		return func(ctx context.Context) error { return c.Status().Patch(ctx, copied(o), patch) }
	}
	object := func(c client.Client, o client.Object, patch client.Patch) func(context.Context) error {
		return func(ctx context.Context) error { return c.Patch(ctx, copied(o), patch) }
	}
	event := func(c client.Client, about *corev1.Pod) func(context.Context) error {
		return func(ctx context.Context) error {
			return c.Create(ctx, &corev1.Event{
				ObjectMeta:     metav1.ObjectMeta{GenerateName: "e-", Namespace: s.namespace},
				InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: s.namespace, Name: about.Name, UID: about.UID},
				Reason:         "Test", Message: "test", Type: corev1.EventTypeNormal,
			})
		}
	}
	records := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "sidecar-result"}}
	record := func(key string) client.Patch { return merge(`{"data":{"` + key + `":"{}"}}`) }
	s.check(s.Patch(t.Context(), copied(records), record("Pod.others")), "record")
	const policy = "ValidatingAdmissionPolicy"
	attempts := func(bound, unbound client.Client) map[string]attempt {
		return map[string]attempt{
			"label of its pod":                   {do: status(bound, mine, label)},
			"condition of its pod":               {do: status(bound, mine, client.RawPatch("application/strategic-merge-patch+json", []byte(`{"status":{"conditions":[{"type":"a.b/c","status":"True"}]}}`)))},
			"label of another pod":               {do: status(bound, others, label), words: []string{policy, `pod "mine"`}},
			"label of a pod, token of no pod":    {do: status(unbound, mine, label), words: []string{policy}},
			"readiness of its pod":               {do: status(bound, mine, client.RawPatch("application/strategic-merge-patch+json", []byte(`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`))), words: []string{policy, "of its own only"}},
			"container status of its pod":        {do: status(bound, mine, merge(`{"status":{"containerStatuses":[]}}`)), words: []string{policy}},
			"spec of its pod":                    {do: object(bound, mine, merge(`{"spec":{"activeDeadlineSeconds":1}}`)), words: []string{"cannot patch"}},
			"deleting its pod":                   {do: func(ctx context.Context) error { return bound.Delete(ctx, copied(mine)) }, words: []string{"cannot delete"}},
			"event about its pod":                {do: event(bound, mine)},
			"event about another pod":            {do: event(bound, others), words: []string{policy, "its own pod"}},
			"record of its workload":             {do: object(bound, records, record("Pod.mine"))},
			"record of another workload":         {do: object(bound, records, record("Pod.others2")), words: []string{policy, "its own workload"}},
			"taking away another workload's":     {do: object(bound, records, merge(`{"data":{"Pod.others":null}}`)), words: []string{policy}},
			"an owner of the records":            {do: object(bound, records, merge(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"none","uid":"none"}]}}`)), words: []string{policy, "nothing of a ConfigMap but its data"}},
			"records that nobody may change":     {do: object(bound, records, merge(`{"immutable":true}`)), words: []string{policy, "nothing of a ConfigMap but its data"}},
			"another ConfigMap":                  {do: object(bound, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "refit-sidecar"}}, record("a")), words: []string{"cannot patch"}},
			"its GameServer":                     {do: object(bound, myServer, opsState)},
			"another GameServer":                 {do: object(bound, othersServer, opsState), words: []string{policy, "its own pod"}},
			"request for its pod":                {do: status(bound, myRequest, note)},
			"request for another pod":            {do: status(bound, othersRequest, note), words: []string{policy, "its own pod"}},
			"request for a pod, token of no pod": {do: status(unbound, myRequest, note), words: []string{policy}},
			"reading the secret with the token":  {do: func(ctx context.Context) error { return bound.Get(ctx, s.key("refit-sidecar-token"), &corev1.Secret{}) }, words: []string{"cannot get"}},
			"making a pod":                       {do: func(ctx context.Context) error { return bound.Create(ctx, s.podOf("new", shell("app", obedient))) }, words: []string{"cannot create"}},
		}
	}
	dry := attempts(client.NewDryRunClient(bound), client.NewDryRunClient(unbound))
	for name, real := range attempts(bound, unbound) {
		t.Run(name, func(t *testing.T) {
			// A policy that has just been applied is in force a moment later. What it lets through until then must change
			// nothing, so it is tried without storing; after that the first answer counts.
			last := until(t.Context(), patience, func(ctx context.Context) (bool, error) {
				return dry[name].answered(dry[name].do(ctx)), nil
			})
			if last != nil {
				t.Errorf("without storing: %v", last)
			}
			if err := real.do(t.Context()); !real.answered(err) {
				t.Errorf("answer %v, want a refusal with %q (none: allowed)", err, real.words)
			}
		})
	}
}

// TestASidecarRecordsOnlyForItsWholeWorkload has pods whose names begin with the name of another workload.
func TestASidecarRecordsOnlyForItsWholeWorkload(t *testing.T) {
	t.Parallel()
	s := newSidecarFixture(t)
	records := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "sidecar-result"}}
	for name, keys := range map[string]map[string]bool{
		"game-lobby-7d9f8c6b5d-x7k2q": {"Deployment.game-lobby": true, "Deployment.game": false, "StatefulSet.game": false, "Pod.game": false},
		"game-lobby-0":                {"StatefulSet.game-lobby": true, "StatefulSet.game": false, "Deployment.game": false, "DaemonSet.game-lobby": false},
		"game-7d9f8c6b5d-x7k2q":       {"Deployment.game": true, "Deployment.game-lobby": false, "Deployment.gam": false},
	} {
		pod := s.podOf(name, shell("app", obedient))
		pod.Spec.ServiceAccountName = "refit-sidecar"
		pod.Spec.NodeSelector = map[string]string{"refit.dev/no-such-node": "true"}
		s.check(s.Create(t.Context(), pod), "make pod %s", name)
		bound := client.NewDryRunClient(s.as(s.token(s.namespace, "refit-sidecar", pod)))
		for key, allowed := range keys {
			try := attempt{do: func(ctx context.Context) error {
				return bound.Patch(ctx, records.DeepCopy(), merge(`{"data":{"`+key+`":"{}"}}`))
			}}
			if !allowed {
				try.words = []string{"ValidatingAdmissionPolicy", "its own workload"}
			}
			// The policy is in force a moment after it was applied, and nothing is stored.
			err := until(t.Context(), patience, func(ctx context.Context) (bool, error) { return try.answered(try.do(ctx)), nil })
			// From then on it answers the same each time.
			for range 5 {
				if answer := try.do(t.Context()); err != nil || !try.answered(answer) {
					t.Fatalf("pod %s, key %s, allowed %t: %v", name, key, allowed, answer)
				}
			}
		}
	}
}

// attempt is something that a sidecar's token tries.
type attempt struct {
	do    func(context.Context) error
	words []string // of the refusal; none: allowed
}

// answered reports whether the answer is the one that is wanted.
func (a attempt) answered(err error) bool {
	if len(a.words) == 0 {
		return err == nil
	}
	return (apierrors.IsForbidden(err) || apierrors.IsInvalid(err)) && containsAll(err.Error(), a.words)
}

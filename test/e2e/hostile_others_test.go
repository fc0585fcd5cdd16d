package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

// bystander is a workload of the other tenant which no canary touches, with a SidecarSet, whose name it returns.
func (s *sidecarFixture) bystander() string {
	s.t.Helper()
	set := s.sidecarSet("bystander", `containers: [{name: log, image: "`+image+`", command: [sleep, "100000"]}]`)
	s.knows(selected("bystander", s.podOf("injected", shell("app", obedient))), "log")
	s.apply(strings.ReplaceAll(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: bystander}
spec:
  selector: {matchLabels: {sidecarset: bystander}}
  template:
    metadata: {labels: {sidecarset: bystander}, annotations: {example.com/own: "1"}}
    spec: {terminationGracePeriodSeconds: 1, containers: [{name: app, image: "$IMAGE", command: [sleep, "100000"]}]}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: bystander}, data: {own: "1"}}
`, "$IMAGE", image))
	s.await("the bystander to be counted", func(ctx context.Context) (bool, error) {
		err := s.Get(ctx, client.ObjectKeyFromObject(set), set)
		return set.Status.MatchedPods == 1 && set.Status.UpdatedReadyPods == 1, err
	})
	return set.Name
}

// unchanged fails the test if an object of the other tenant is not as it was after the last round, and returns the objects.
func (s *fixture) unchanged(ctx context.Context, a attacker) map[string]string {
	s.t.Helper()
	after, err := s.others(ctx, a.bystander)
	if err != nil {
		if ctx.Err() == nil {
			s.t.Errorf("look at the objects of the other tenant: %v", err)
		}
		return a.others
	}
	for _, fault := range changed(a.others, after) {
		s.t.Errorf("round %d: %s", a.round, fault)
	}
	return after
}

// settled are the kinds of objects of the other tenant that do not change at all while the canaries run, and described the kinds of which only
// the status changes. The other tenant need not have objects of each kind.
var (
	settled = []schema.GroupVersionKind{
		{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "ServiceAccount"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	}
	described = []schema.GroupVersionKind{
		{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1", Kind: "ReplicaSet"}, {Group: "apps", Version: "v1", Kind: "StatefulSet"},
		{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}, {Group: "apps.kruise.io", Version: "v1alpha1", Kind: "PodProbeMarker"},
		{Group: "refit.dev", Version: "v1alpha1", Kind: "RestartRollout"}, {Group: "refit.dev", Version: "v1alpha1", Kind: "RestartSchedule"},
		{Group: "refit.dev", Version: "v1alpha1", Kind: "InPlaceUpdatePolicy"}, {Group: "apps.kruise.io", Version: "v1beta1", Kind: "ImageListPullJob"},
	}
	podKind        = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	sidecarSetKind = schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "SidecarSet"}
)

// records is a ConfigMap that the sidecar of the other tenant writes.
const records = "sidecar-result"

// others are the objects of the other tenant, by kind and name, with what only the tenant changes: it has a workload that no canary touches, and
// a SidecarSet for that alone. Requests and ImagePullJobs are not among them: the canaries create them, and judge their results.
func (s *fixture) others(ctx context.Context, own string) (map[string]string, error) {
	found := map[string]string{}
	add := func(object *unstructured.Unstructured, facts any) error {
		text, err := json.Marshal(facts)
		found[object.GetKind()+" "+object.GetName()] = string(text)
		return err
	}
	for _, kind := range slices.Concat(settled, described, []schema.GroupVersionKind{podKind}) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := s.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
			return nil, fmt.Errorf("list %s of the other tenant: %w", kind.Kind, err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			facts := factsOf(object)
			if facts == nil {
				continue
			}
			if err := add(object, facts); err != nil {
				return nil, err
			}
		}
	}
	set := &unstructured.Unstructured{}
	set.SetGroupVersionKind(sidecarSetKind)
	if err := s.Get(ctx, client.ObjectKey{Name: own}, set); err != nil {
		return nil, fmt.Errorf("get SidecarSet of the other tenant: %w", err)
	}
	return found, add(set, map[string]any{"metadata": kept(set), "spec": set.Object["spec"], "status": set.Object["status"]})
}

// factsOf is what nobody but its owner changes of an object of the other tenant; nil: the canaries change all of it.
func factsOf(object *unstructured.Unstructured) any {
	kind := object.GroupVersionKind()
	switch {
	case kind == podKind:
		return factsOfPod(object)
	case slices.Contains(settled, kind) && object.GetName() == records:
		return nil
	case slices.Contains(settled, kind):
		return object.GetResourceVersion()
	}
	return map[string]any{"metadata": kept(object), "spec": object.Object["spec"]}
}

// kept is the metadata of an object without what counts its writes.
func kept(object *unstructured.Unstructured) map[string]any {
	metadata := maps.Clone(object.Object["metadata"].(map[string]any))
	for _, key := range []string{"resourceVersion", "managedFields", "generation"} {
		delete(metadata, key)
	}
	return metadata
}

// factsOfPod are without what the canaries write: they update some pods, and replace these, and the sidecar writes results to its own.
func factsOfPod(pod *unstructured.Unstructured) any {
	metadata := kept(pod)
	annotations := map[string]string{}
	maps.Copy(annotations, pod.GetAnnotations())
	delete(annotations, v1beta1.AnnotationRuntimeContainersMeta) // refit-daemon may write it a while after the start
	metadata["annotations"] = annotations
	facts := map[string]any{"metadata": metadata, "spec": pod.Object["spec"]}
	prefix, _, _ := strings.Cut(pod.GetName(), "-")
	_, hot, _ := unstructured.NestedString(pod.Object, "metadata", "labels", sidecarLabel)
	switch {
	case prefix == "update":
		return map[string]any{"labels": pod.GetLabels(), "annotations": foreignTo(annotations), "ownerReferences": pod.GetOwnerReferences()}
	case hot:
		delete(metadata, "labels")
		delete(metadata, "annotations")
	case prefix == "request" || prefix == "probe":
		metadata["annotations"] = foreignTo(annotations)
	}
	return facts
}

// sidecarLabel is on pods with refit-sidecar.
const sidecarLabel = "refit.dev/sidecar"

// foreignTo are the annotations that no program of Refit writes.
func foreignTo(annotations map[string]string) map[string]string {
	left := map[string]string{}
	for key, value := range annotations {
		if domain, _, _ := strings.Cut(key, "/"); !strings.HasSuffix(domain, "refit.dev") && !strings.HasSuffix(domain, "kruise.io") {
			left[key] = value
		}
	}
	return left
}

// changed says what is different, new or gone. A pod that a canary is just replacing is not gone.
func changed(before, after map[string]string) (faults []string) {
	for name, was := range before {
		switch is, there := after[name]; {
		case !there && !strings.HasPrefix(name, "Pod update-"):
			faults = append(faults, name+" of the other tenant is gone")
		case there && is != was:
			faults = append(faults, fmt.Sprintf("%s of the other tenant was\n%.2000s\nand is\n%.2000s", name, was, is))
		}
	}
	for name, is := range after {
		if _, there := before[name]; !there && !strings.HasPrefix(name, "Pod update-") {
			faults = append(faults, fmt.Sprintf("%s of the other tenant is new: %.2000s", name, is))
		}
	}
	slices.Sort(faults)
	return faults
}

// sidecarSetOfBoth selects pods of both tenants, and has to be injected.
func (s *sidecarFixture) sidecarSetOfBoth(tenant *fixture) string {
	s.t.Helper()
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-hostile"}}
	out, err := s.kubectl(s.t.Context(), strings.NewReplacer("$NAME", set.Name, "$BOTH", s.namespace+", "+tenant.namespace, "$IMAGE", image).Replace(`
apiVersion: apps.kruise.io/v1beta1
kind: SidecarSet
metadata: {name: $NAME}
spec:
  selector: {matchLabels: {sidecarset: hostile}}
  namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [$BOTH]}]}
  injectionStrategy: {failurePolicy: Fail}
  patchContainers: [{nameRegex: ".*", env: [{name: GOMAXPROCS, value: "2"}]}]
  containers: [{name: log, image: "$IMAGE", command: [sleep, "1000"], env: [{name: PORT, value: "8080"}]}]
`), "apply", "--server-side", "--filename=-")
	s.check(err, "apply SidecarSet: %s", out)
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), cleanTimeout)
		defer cancel()
		if err := s.Delete(ctx, set); err != nil {
			s.t.Logf("clean: %v", err)
		}
	})
	s.knows(selected("hostile", s.podOf("injected", shell("app", obedient))), "log")
	return set.Name
}

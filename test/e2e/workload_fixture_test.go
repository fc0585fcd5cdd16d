package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// workload is Deployment, StatefulSet or DaemonSet web, whose pods have the containers app and log.
type workload struct {
	*fixture
	kind string
	ref  string // for kubectl, as deployment/web
}

// newWorkload makes one and waits for its pods. own are the fields of its kind, as in a flow of YAML.
func newWorkload(t *testing.T, kind, own string) *workload {
	t.Helper()
	w := &workload{fixture: newFixture(t), kind: kind, ref: strings.ToLower(kind) + "/web"}
	w.input(w.manifest("web", own, image), "apply")
	w.rolledOut()
	return w
}

func (w *workload) manifest(name, own, image string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: %s
metadata: {name: %s}
spec:
  {%s selector: {matchLabels: {app: %[2]s}}, template: {metadata: {labels: {app: %[2]s}}, spec: {terminationGracePeriodSeconds: 3, containers: [
  {name: app, image: %[4]q, imagePullPolicy: IfNotPresent, command: [sh, -c, %[5]q]},
  {name: log, image: %[6]q, imagePullPolicy: IfNotPresent, command: [sh, -c, %[5]q]}]}}}
`, w.kind, name, own, image, obedient, newImage)
}

// input is kubectl with a manifest; it has to succeed.
func (w *workload) input(manifest string, args ...string) string {
	w.t.Helper()
	out, err := w.kubectl(w.t.Context(), manifest, append(args, "--namespace", w.namespace, "--filename=-")...)
	w.check(err, "kubectl %s: %s", strings.Join(args, " "), out)
	return out
}

// refusedRun is kubectl that has to fail and to say why.
func (w *workload) refusedRun(word string, args ...string) {
	w.t.Helper()
	out, err := w.kubectl(w.t.Context(), "", append([]string{"--namespace", w.namespace}, args...)...)
	if err == nil || !strings.Contains(out, word) {
		w.t.Errorf("kubectl %s: %v, %s; want a refusal with %q", strings.Join(args, " "), err, out, word)
	}
}

func (w *workload) rolledOut() {
	w.t.Helper()
	w.run("rollout", "status", w.ref, "--timeout="+patience.String())
}

// changes sets the image of container app, with other fields of the spec in the same write, such as `"paused":true,`.
func (w *workload) changes(image, with string) {
	w.t.Helper()
	w.patches(`{"spec":{` + with + templateOf(image) + `}}`)
}

func (w *workload) patches(patch string) {
	w.t.Helper()
	w.run("patch", w.ref, "--patch", patch)
}

func templateOf(image string) string {
	return fmt.Sprintf(`"template":{"spec":{"containers":[{"name":"app","image":%q}]}}`, image)
}

func (w *workload) get(ctx context.Context) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind(w.kind))
	return u, w.Get(ctx, w.key("web"), u)
}

// field of an object as text, empty if it is not there.
func field(u *unstructured.Unstructured, path string) string {
	value, found, _ := unstructured.NestedFieldNoCopy(u.Object, strings.Split(path, ".")...)
	if !found {
		return ""
	}
	return fmt.Sprint(value)
}

// awaits waits until the workload has these values, given as pairs of a path and a text.
func (w *workload) awaits(pairs ...string) *unstructured.Unstructured {
	w.t.Helper()
	var u *unstructured.Unstructured
	w.await(fmt.Sprintf("%s with %q", w.ref, pairs), func(ctx context.Context) (bool, error) {
		var err error
		if u, err = w.get(ctx); err != nil {
			return false, err
		}
		for i := 0; i < len(pairs); i += 2 {
			if field(u, pairs[i]) != pairs[i+1] {
				return false, nil
			}
		}
		return true, nil
	})
	return u
}

// settled waits until the controller of the workload has done what follows from its present spec. Controllers write
// observedGeneration after they have created and deleted pods and ReplicaSets.
func (w *workload) settled() *unstructured.Unstructured {
	w.t.Helper()
	var u *unstructured.Unstructured
	w.await(w.ref+" to be observed", func(ctx context.Context) (bool, error) {
		var err error
		u, err = w.get(ctx)
		return err == nil && field(u, "status.observedGeneration") == field(u, "metadata.generation"), err
	})
	return u
}

// ready waits until the workload has so many ready pods and no other.
func (w *workload) ready(n int) []corev1.Pod {
	w.t.Helper()
	var pods []corev1.Pod
	w.await(fmt.Sprintf("%d ready pods", n), func(context.Context) (bool, error) {
		pods = w.webs()
		return len(pods) == n && !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil || !podReady(&p) }), nil
	})
	return pods
}

// keeps fails the test unless the pods are the ones before, and none is being deleted.
func (w *workload) keeps(before []corev1.Pod) {
	w.t.Helper()
	after := map[types.UID]bool{}
	for _, pod := range w.webs() {
		after[pod.UID] = pod.DeletionTimestamp == nil
	}
	for i := range before {
		if !after[before[i].UID] {
			w.t.Errorf("pod %s has been deleted", before[i].Name)
		}
	}
	if len(after) != len(before) {
		w.t.Errorf("%d pods, want %d", len(after), len(before))
	}
}

// inPlace sets the image of container app in each pod, as an update in place does.
func (w *workload) inPlace(pods []corev1.Pod, image string) []corev1.Pod {
	w.t.Helper()
	for i := range pods {
		w.setImage(pods[i].Name, "app="+image)
	}
	for i := range pods {
		w.replaced(&pods[i], "app")
		w.same(&pods[i])
		w.untouched(&pods[i], "log")
	}
	return w.ready(len(pods))
}

// imagesOf are the images of container app.
func imagesOf(pods []corev1.Pod) (images []string) {
	for i := range pods {
		images = append(images, containerOf(&pods[i], "app").Image)
	}
	return images
}

// sets are the ReplicaSets of the Deployment, with the one that has pods last.
func (w *workload) sets() []appsv1.ReplicaSet {
	w.t.Helper()
	var list appsv1.ReplicaSetList
	w.check(w.List(w.t.Context(), &list, client.InNamespace(w.namespace), client.MatchingLabels{"app": "web"}), "list ReplicaSets")
	slices.SortFunc(list.Items, func(a, b appsv1.ReplicaSet) int { return int(*a.Spec.Replicas - *b.Spec.Replicas) })
	return list.Items
}

// setTemplate writes the template of a ReplicaSet.
func (w *workload) setTemplate(set *appsv1.ReplicaSet, image string) {
	w.t.Helper()
	w.run("patch", "replicaset/"+set.Name, "--patch", `{"spec":{`+templateOf(image)+`}}`)
}

// relabels gives pods the revision by which a StatefulSet or DaemonSet counts them.
func (w *workload) relabels(revision string, pods ...corev1.Pod) {
	w.t.Helper()
	for i := range pods {
		w.run("label", "pod/"+pods[i].Name, appsv1.ControllerRevisionHashLabelKey+"="+revision, "--overwrite")
	}
}

// deletes a pod at once, and waits until it is gone; one with the same name may be there then.
func (w *workload) deletes(pod *corev1.Pod) {
	w.t.Helper()
	w.check(w.Delete(w.t.Context(), pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID}), "delete pod %s", pod.Name)
	w.await("end of pod "+pod.Name, func(ctx context.Context) (bool, error) {
		is := &corev1.Pod{}
		err := w.Get(ctx, w.key(pod.Name), is)
		return apierrors.IsNotFound(err) || is.UID != pod.UID, client.IgnoreNotFound(err)
	})
}

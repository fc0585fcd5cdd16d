package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

// gatedWithSidecar are fields of pods that have the readiness gate and the native sidecar mesh, as in a flow of YAML.
const gatedWithSidecar = "readinessGates: [{conditionType: %s}], initContainers: [{name: mesh, image: %q, restartPolicy: Always, command: [sh, -c, %q]}], "

// otherReplicaSet has no Deployment, and a pod with the labels of the pods of workload web. Its own labels are others, so that no
// Deployment adopts it.
const otherReplicaSet = `
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: other, labels: {app: other}}
spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: %q, command: [sh, -c, %q]}]}}}
`

// Each pod leaves its Services before the first of its containers is stopped. A pod with the same labels that another controller owns
// is not touched.
func TestPodsWithANativeSidecarAreDrainedInTheOrderOfTheirDeletionCost(t *testing.T) {
	t.Parallel()
	w := &workload{fixture: newFixture(t), kind: "Deployment", ref: "deployment/web"}
	w.input(w.placed("replicas: 2,", fmt.Sprintf(gatedWithSidecar, v1beta1.ReadinessGateKruisePodReady, image, obedient)), "apply")
	w.input(fmt.Sprintf(otherReplicaSet, image, obedient), "apply")
	w.rolledOut()
	all := w.ready(3)
	slices.SortFunc(all, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	other, own := &all[0], all[1:]
	for i, cost := range []string{"2", "1"} { // the contrary of the default order
		w.run("annotate", "pod/"+own[i].Name, corev1.PodDeletionCost+"="+cost)
	}
	w.follows(", podOrder: DeletionCost, drainSeconds: 4")
	e := w.endpointsOf(3)
	stop := w.firstStops(own)
	w.run("set", "image", w.ref, "app="+newImage, "mesh="+newImage)
	w.says(refitv1alpha1.ConditionReady, metav1.ConditionTrue, "")
	var order []string
	for _, first := range stop() {
		order = append(order, first.pod)
		if first.drained < 2*time.Second { // times of conditions are whole seconds
			t.Errorf("pod %s was not ready for %s before its first container was stopped, want 4 s", first.pod, first.drained)
		}
	}
	if want := []string{own[1].Name, own[0].Name}; !slices.Equal(order, want) {
		t.Errorf("updated in the order %q, want %q", order, want)
	}
	if least := e.least(3); least < 2 {
		t.Errorf("%d of 3 endpoints were ready", least)
	}
	w.keeps(all)
	for i := range own {
		w.same(&own[i])
		w.restarted(&own[i], "mesh", 1)
		after := w.restarted(&own[i], "app", 1)
		w.untouched(&own[i], "log")
		if containerOf(after, "mesh").Image != newImage || containerOf(after, "app").Image != newImage {
			t.Errorf("pod %s: images %s and %s", after.Name, containerOf(after, "mesh").Image, containerOf(after, "app").Image)
		}
	}
	w.untouched(other, "app")
	if is := w.pod(other.Name); containerOf(is, "app").Image != image || is.Annotations[v1beta1.AnnotationInPlaceUpdateState] != "" {
		t.Errorf("the pod of another ReplicaSet has image %s, annotations %v", containerOf(is, "app").Image, is.Annotations)
	}
	w.isFree()
	w.rolledOut()
}

// firstStop is when the first container of a pod was stopped.
type firstStop struct {
	pod     string
	drained time.Duration // for how long the pod was not ready before
}

// firstStops follows pods until stop is called, which returns their first stops in order.
func (w *workload) firstStops(before []corev1.Pod) (stop func() []firstStop) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	changes, err := w.Watch(ctx, &corev1.PodList{}, client.InNamespace(w.namespace), client.MatchingLabels{"app": "web"})
	w.check(err, "watch pods")
	var stops []firstStop
	var done sync.WaitGroup
	done.Go(func() {
		drained, stopped := map[string]time.Time{}, map[string]bool{}
		for event := range changes.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || stopped[pod.Name] {
				continue
			}
			began, down := drained[pod.Name]
			switch {
			case slices.ContainsFunc(before, func(was corev1.Pod) bool { return was.Name == pod.Name && anyStopped(&was, pod) }):
				first := firstStop{pod: pod.Name}
				if down {
					first.drained = time.Since(began)
				}
				stops, stopped[pod.Name] = append(stops, first), true
			case !down && !podReady(pod):
				drained[pod.Name] = time.Now()
			}
		}
	})
	return func() []firstStop {
		changes.Stop()
		cancel()
		done.Wait()
		return stops
	}
}

// anyStopped reports whether a container of a pod is not the instance before, or does not run.
func anyStopped(before, pod *corev1.Pod) bool {
	return slices.ContainsFunc(statuses(before), func(was corev1.ContainerStatus) bool {
		is := status(pod, was.Name)
		return is.ContainerID != was.ContainerID || is.State.Running == nil
	})
}

package control

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1alpha1"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func testScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	types := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(types), v1alpha1.AddToScheme(types)); err != nil {
		t.Fatal(err)
	}
	return types
}

func testNode() *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}} }

func gameMarker(name string) *v1alpha1.PodProbeMarker {
	m := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 1}}
	m.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "game"}}
	p := v1alpha1.PodContainerProbe{Name: "idle", ContainerName: "app", PodConditionType: "game.kruise.io/" + name}
	p.Probe.Exec = &corev1.ExecAction{Command: []string{"idle"}}
	p.MarkerPolicy = []v1alpha1.ProbeMarkerPolicy{
		{State: v1alpha1.ProbeSucceeded, Labels: map[string]string{name: "idle"}},
		{State: v1alpha1.ProbeFailed, Labels: map[string]string{name: "busy"}, Annotations: map[string]string{"cost": "1"}},
	}
	m.Spec.Probes = []v1alpha1.PodContainerProbe{p}
	return m
}

// largeMarker has probes that exceed the size of a NodePodProbe and of the annotation on virtual nodes.
func largeMarker(name string) *v1alpha1.PodProbeMarker {
	m := gameMarker(name)
	one := m.Spec.Probes[0]
	m.Spec.Probes = nil
	for i := range v1alpha1.MaxProbesOfMarker {
		one.Name, one.PodConditionType = fmt.Sprint("p", i), fmt.Sprint("example.com/p", i)
		one.Probe.Exec = &corev1.ExecAction{Command: []string{strings.Repeat("x", 10<<10)}}
		m.Spec.Probes = append(m.Spec.Probes, one)
	}
	return m
}

func gamePod(name string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": "game"},
	}}
	pod.Spec = corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "app"}}}
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, "10.0.0.1"
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.PodInitialized, Status: corev1.ConditionTrue},
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", ContainerID: "containerd://app1"}}
	return pod
}

// results are what a daemon reports for a pod.
func results(pod string, state v1alpha1.ProbeState, of ...string) v1alpha1.PodProbeStatus {
	status := v1alpha1.PodProbeStatus{Namespace: "shop", Name: pod, UID: "uid-" + pod}
	for _, name := range of {
		status.ProbeStates = append(status.ProbeStates, v1alpha1.ContainerProbeState{Name: name, State: state, LastTransitionTime: metav1.NewTime(noon)})
	}
	return status
}

// edit changes a stored object as a user would.
func edit[T client.Object](w *apiServer, object T, change func(T)) {
	w.t.Helper()
	if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		w.t.Fatal(err)
	}
	change(object)
	object.SetGeneration(object.GetGeneration() + 1) // of changes of the spec, which the fake client does not count
	if err := w.Update(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
}

package sidecarsetcheck_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/sidecarsetcheck"
)

// history is what the API server has stored of four pods of two workloads.
type history struct {
	*sidecarsetcheck.Check
	pods map[string]*corev1.Pod
}

func newHistory() *history {
	h := &history{Check: &sidecarsetcheck.Check{SidecarSet: "log", Container: "side", MaxUnavailable: 2}, pods: map[string]*corev1.Pod{}}
	h.Target("side:1")
	for i := range 4 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("web-%d", i), UID: types.UID(fmt.Sprintf("uid-%d", i)), Generation: 1, Annotations: map[string]string{v1beta1.AnnotationSidecarSetList: "a,log"},
			OwnerReferences: []metav1.OwnerReference{{UID: types.UID(fmt.Sprintf("workload-%d", i/2)), Controller: new(true)}},
		}}
		pod.Spec.Containers = []corev1.Container{{Name: "app"}, {Name: "side", Image: "side:1", Env: []corev1.EnvVar{{Name: v1beta1.EnvSidecarInjected, Value: "true"}}}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", ContainerID: "app", Ready: true}, {Name: "side", ContainerID: "side", Ready: true}}
		h.pods[pod.Name] = pod
		h.kubelet(pod.Name, true)
	}
	h.Target("side:2")
	return h
}

func (h *history) store(name string, change func(*corev1.Pod)) {
	pod := h.pods[name].DeepCopy()
	change(pod)
	h.pods[name] = pod
	h.See(watch.Modified, pod)
}

func (h *history) kubelet(name string, ready bool) {
	h.store(name, func(pod *corev1.Pod) {
		status := corev1.ConditionFalse
		if ready {
			status = corev1.ConditionTrue
		}
		pod.Status.ObservedGeneration = pod.Generation
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
	})
}

func (h *history) update(name, image string) {
	h.store(name, func(pod *corev1.Pod) { pod.Spec.Containers[1].Image, pod.Generation = image, pod.Generation+1 })
}

// restarts is kubelet's part of an update.
func (h *history) restarts(name string) {
	h.kubelet(name, false)
	h.store(name, func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses[1].ContainerID += "+"
		pod.Status.ContainerStatuses[1].RestartCount++
	})
	h.kubelet(name, true)
}

func TestAGoodRolloutIsAccepted(t *testing.T) {
	t.Parallel()
	h := newHistory()
	for _, image := range []string{"side:2", "side:1"} {
		h.Target(image)
		for _, pair := range [][]string{{"web-0", "web-2"}, {"web-1", "web-3"}} {
			for _, name := range pair {
				h.update(name, image)
			}
			for _, name := range pair {
				h.restarts(name)
			}
		}
	}
	h.See(watch.Deleted, h.pods["web-3"])
	if got := h.Findings(); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// Each history has a fault, which has to be found, and no other.
func TestFaultsAreFound(t *testing.T) {
	t.Parallel()
	for want, fault := range map[string]func(*history){
		"updated while 2 others": func(h *history) {
			h.pods["web-1"].OwnerReferences = nil // a workload of its own
			h.update("web-0", "side:2")
			h.update("web-2", "side:2")
			h.update("web-1", "side:2")
		},
		"was updated to side:2 2 times": func(h *history) {
			h.update("web-0", "side:2")
			h.restarts("web-0")
			h.update("web-0", "side:1")
			h.restarts("web-0")
			h.update("web-0", "side:2")
		},
		"which the SidecarSet never had": func(h *history) { h.update("web-0", "side:3") },
		"the last of its workload":       func(h *history) { h.update("web-0", "side:2"); h.update("web-1", "side:2") },
		"container app was restarted": func(h *history) {
			h.store("web-0", func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ContainerID = "x" })
		},
		"the sidecar was restarted 2 times for 1 updates": func(h *history) { h.update("web-0", "side:2"); h.restarts("web-0"); h.restarts("web-0") },
		"has the sidecar: true, says so: false":           func(h *history) { h.store("web-0", func(p *corev1.Pod) { p.Annotations = nil }) },
		"has the sidecar: false, says so: true":           func(h *history) { h.store("web-0", func(p *corev1.Pod) { p.Spec.Containers[1].Env = nil }) },
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			h := newHistory()
			fault(h)
			if got := h.Findings(); len(got) != 1 || !strings.Contains(got[0], want) {
				t.Errorf("found %q", got)
			}
		})
	}
}

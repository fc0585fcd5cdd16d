package sidecarsetcheck_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/sidecarsetcheck"
)

// history is what the API server has stored of four pods of two workloads.
type history struct {
	*sidecarsetcheck.Follower
	pods map[string]*corev1.Pod
	now  time.Time
}

func newHistory() *history {
	h := &history{Follower: &sidecarsetcheck.Follower{SidecarSet: "log", Container: "side", MaxUnavailable: 2}, pods: map[string]*corev1.Pod{}, now: time.Unix(0, 0)}
	h.target("side:1")
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
	h.target("side:2")
	return h
}

// target is said to be stored a minute after what was before, and so is each version of a pod.
func (h *history) target(image string) {
	h.now = h.now.Add(time.Minute)
	h.Target(image, h.now, entry.Line{})
}

func (h *history) see(pod *corev1.Pod, gone bool) {
	h.See(sidecarsetcheck.Version{Pod: pod, At: h.now, Gone: gone})
}

func (h *history) store(name string, change func(*corev1.Pod)) {
	pod := h.pods[name].DeepCopy()
	change(pod)
	h.pods[name] = pod
	h.now = h.now.Add(time.Minute)
	h.see(pod, false)
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
		h.target(image)
		for _, pair := range [][]string{{"web-0", "web-2"}, {"web-1", "web-3"}} {
			for _, name := range pair {
				h.update(name, image)
			}
			for _, name := range pair {
				h.restarts(name)
			}
		}
	}
	h.see(h.pods["web-3"], true)
	if got := h.Findings(); len(got) > 0 || h.Updates() != 8 {
		t.Errorf("%d updates, found %q", h.Updates(), got)
	}
}

// kubelet has done nothing yet when the SidecarSet has its old image again, and then has nothing to do.
func TestAnUpdateThatIsTakenBackIsOver(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		running string // image of the sidecar by kubelet's report
		want    int
	}{
		"before kubelet replaced the container": {"side:1", 0},
		"after it":                              {"side:2", 2}, // and the last of its workload
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHistory()
			for _, name := range []string{"web-0", "web-2"} {
				h.update(name, "side:2")
			}
			h.target("side:1")
			for _, name := range []string{"web-0", "web-2"} {
				h.update(name, "side:1")
				h.store(name, func(pod *corev1.Pod) {
					pod.Status.ContainerStatuses[1].Image, pod.Status.ObservedGeneration = test.running, pod.Generation
				})
			}
			h.target("side:3")
			h.update("web-1", "side:3")
			if got := h.Findings(); len(got) != test.want {
				t.Errorf("found %q", got)
			}
		})
	}
}

// A pod that is updated while kubelet creates its sidecar, for the first time or again, gets the one of before first.
func TestAnUpdateOfAPodThatStartsIsOverWithItsImage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		last    string // container ID of the sidecar before
		running string // image of the sidecar that is created
		want    int
	}{
		"of before":            {"", "side:1", 0},
		"of the update":        {"", "side:2", 1},
		"of before, again":     {"side", "side:1", 0},
		"of the update, again": {"side", "side:2", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHistory()
			for _, pod := range h.pods {
				pod.OwnerReferences = nil
			}
			h.store("web-0", func(pod *corev1.Pod) {
				pod.Status.ContainerStatuses[1].ContainerID, pod.Status.Conditions = test.last, nil
			})
			for _, name := range []string{"web-2", "web-3", "web-0"} {
				h.update(name, "side:2")
			}
			h.store("web-0", func(pod *corev1.Pod) {
				pod.Status.ContainerStatuses[1].ContainerID, pod.Status.ContainerStatuses[1].Image = "next", test.running
				pod.Status.Conditions = h.pods["web-1"].Status.Conditions
			})
			h.target("side:1")
			h.update("web-0", "side:1")
			if got := h.Findings(); len(got) != test.want {
				t.Errorf("found %q", got)
			}
		})
	}
}

// What the manager cannot know, and what others have done, is no fault of the rollout.
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
			if got := h.Findings(); len(got) != 1 || !strings.Contains(got[0].String(), want) {
				t.Errorf("found %q", got)
			}
		})
	}
}

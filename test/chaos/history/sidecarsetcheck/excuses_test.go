package sidecarsetcheck_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/model"
)

func TestOthersAreExcused(t *testing.T) {
	t.Parallel()
	fault := func(kind string) *model.Model {
		return model.New(model.Records{Faults: []entry.Fault{{Kind: kind, Node: "node-1", Begin: time.Unix(0, 0), End: time.Unix(1, 0).Add(24 * time.Hour)}}})
	}
	restartApp := func(p *corev1.Pod) { p.Spec.NodeName, p.Status.ContainerStatuses[0].ContainerID = "node-1", "app+" }
	restartTwice := func(p *corev1.Pod) {
		p.Status.ContainerStatuses[1].ContainerID, p.Status.ContainerStatuses[1].RestartCount = "side++", 2
	}
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for name, test := range map[string]struct {
		play func(*history)
		want string
	}{
		"the other pod became unavailable just now": {play: func(h *history) {
			h.kubelet("web-1", false)
			h.now = h.now.Add(-59 * time.Second)
			h.update("web-0", "side:2")
		}},
		"the other pod has been unavailable for long": {want: "the last of its workload", play: func(h *history) {
			h.kubelet("web-1", false)
			h.update("web-0", "side:2")
		}},
		"the other pod was deleted just now": {play: func(h *history) {
			h.see(h.pods["web-1"], true)
			h.now = h.now.Add(-59 * time.Second)
			h.update("web-0", "side:2")
		}},
		"a pod that is not available is updated along with as many as may be": {play: func(h *history) {
			h.kubelet("web-3", false)
			h.update("web-3", "side:2")
			h.now = h.now.Add(-119 * time.Second)
			h.update("web-0", "side:2")
			h.pods["web-1"].OwnerReferences = nil
			h.now = h.now.Add(-59 * time.Second)
			h.update("web-1", "side:2")
		}},
		"a pod that is not available was updated long before": {want: "updated while 2 others", play: func(h *history) {
			h.kubelet("web-3", false)
			h.update("web-3", "side:2")
			h.update("web-0", "side:2")
			h.pods["web-1"].OwnerReferences = nil
			h.update("web-1", "side:2")
		}},
		"the node was lost": {play: func(h *history) {
			h.Records = fault(entry.KindNodeLost)
			h.store("web-0", func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State = runs })
			h.store("web-0", restartApp)
		}},
		"the runtime was restarted while it started the container": {play: func(h *history) {
			h.Records = fault(entry.KindRuntimeRestart)
			h.store("web-0", restartApp)
		}},
		"the runtime was restarted while the container ran": {want: "container app was restarted", play: func(h *history) {
			h.Records = fault(entry.KindRuntimeRestart)
			h.store("web-0", func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State = runs })
			h.store("web-0", restartApp)
		}},
		"there was no room on the runtime's disk while it started the container": {play: func(h *history) {
			h.Records = fault(entry.KindNodeDiskFull)
			h.store("web-0", restartApp)
		}},
		"there was no room on the runtime's disk while the container ran": {want: "container app was restarted", play: func(h *history) {
			h.Records = fault(entry.KindNodeDiskFull)
			h.store("web-0", func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State = runs })
			h.store("web-0", restartApp)
		}},
		"kubelet was restarted while it updated the sidecar": {play: func(h *history) {
			h.Records = fault(entry.KindKubeletRestart)
			h.store("web-0", func(p *corev1.Pod) { p.Spec.NodeName, p.Status.ContainerStatuses[1].State = "node-1", runs })
			h.update("web-0", "side:2")
			h.store("web-0", restartTwice)
			h.kubelet("web-0", true)
		}},
		"kubelet also starts what it was starting before the update": {play: func(h *history) {
			brokenOffBefore(h)
			h.restarted("web-0", 2)
		}},
		"kubelet starts it once more than that": {want: "the sidecar was restarted 3 times for 2 updates", play: func(h *history) {
			brokenOffBefore(h)
			h.restarted("web-0", 3)
		}},
		"kubelet was restarted when the sidecar had been updated": {want: "the sidecar was restarted 2 times for 1 updates", play: func(h *history) {
			h.store("web-0", func(p *corev1.Pod) { p.Spec.NodeName, p.Status.ContainerStatuses[1].State = "node-1", runs })
			h.update("web-0", "side:2")
			h.restarts("web-0")
			h.Records = fault(entry.KindKubeletRestart)
			h.restarts("web-0")
		}},
		"kubelet was restarted before the sidecar was updated": {want: "the sidecar was restarted 2 times for 1 updates", play: func(h *history) {
			h.Records = model.New(model.Records{Faults: []entry.Fault{{Kind: entry.KindKubeletRestart, Node: "node-1", Begin: time.Unix(0, 0), End: time.Unix(1, 0)}}})
			h.store("web-0", func(p *corev1.Pod) { p.Spec.NodeName, p.Status.ContainerStatuses[1].State = "node-1", runs })
			h.update("web-0", "side:2")
			h.store("web-0", restartTwice)
			h.kubelet("web-0", true)
		}},
		"a request has restarted the container": {play: func(h *history) {
			h.Records = requested("app", h.pods["web-0"].Status.ContainerStatuses[0].ContainerID)
			h.store("web-0", restartApp)
		}},
		"a request was for another instance": {want: "container app was restarted", play: func(h *history) {
			h.Records = requested("app", "another")
			h.store("web-0", restartApp)
		}},
		"the end of an update may be missing": {play: func(h *history) {
			h.update("web-0", "side:2")
			h.update("web-2", "side:2")
			h.pods["web-1"].OwnerReferences = nil
			pod := &model.Pod{Unsure: []entry.Write{{Received: h.now.Add(time.Second), Done: h.now.Add(time.Second)}}}
			h.Records = &model.Model{Pods: map[string]*model.Pod{"uid-0": pod}}
			h.update("web-1", "side:2")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHistory()
			test.play(h)
			switch got := h.Findings(); {
			case test.want == "" && len(got) == 0:
			case test.want == "" || len(got) != 1 || !strings.Contains(got[0].String(), test.want):
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
}

// requested are the records of a request for an instance of a container of web-0.
func requested(container, id string) *model.Model {
	request := &v1beta1.ContainerRecreateRequest{}
	request.Spec.Containers = []v1beta1.ContainerRecreateRequestContainer{{
		Name: container, StatusContext: &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: id},
	}}
	return &model.Model{Requests: []*model.Request{{PodUID: "uid-0", Created: entry.Write{Received: time.Unix(0, 0), Request: request}}}}
}

// brokenOffBefore is an update of a pod whose sidecar was being started when kubelet was restarted, which had ended before the update.
func brokenOffBefore(h *history) {
	h.store("web-0", func(p *corev1.Pod) { p.Spec.NodeName = "node-1" })
	h.Records = model.New(model.Records{Faults: []entry.Fault{{Kind: entry.KindKubeletRestart, Node: "node-1", Begin: time.Unix(0, 0), End: h.now}}})
	h.update("web-0", "side:2")
}

// restarted is a sidecar that runs again and again, so often.
func (h *history) restarted(name string, times int) {
	for range times {
		h.store(name, func(p *corev1.Pod) {
			status := &p.Status.ContainerStatuses[1]
			status.ContainerID, status.RestartCount = status.ContainerID+"+", status.RestartCount+1
			status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		})
	}
}

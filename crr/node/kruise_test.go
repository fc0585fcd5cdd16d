package node

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/test/kit/fakecri"
)

// onKruise is a node of a cluster with OpenKruise's CRDs.
func onKruise(n *node) { n.kruise = true }

func force(r *crr.Request) { r.Spec.Strategy.ForceRecreate = true }

func TestForcedRequestsStopOneInstanceEachUnderOpenKruisesCRD(t *testing.T) {
	t.Parallel()
	n := newNode(t, onKruise)
	pod := n.pod("web", app())
	n.request("first", pod, force, "app")
	n.request("second", pod, force, "app")
	for _, name := range []string{"first", "second"} {
		if got := n.ends(name); got != succeeded {
			t.Errorf("%s ended as %s", name, got)
		}
	}
	if stops := n.stops(); len(stops) != 2 || stops[0].ContainerID == stops[1].ContainerID {
		t.Errorf("stops %+v, want one of each of two instances", stops)
	}
}

// kill -9 after the container was stopped, before anything of it was written; kubelet starts the next meanwhile.
func TestDaemonDiesBetweenStopAndRecordUnderOpenKruisesCRD(t *testing.T) {
	t.Parallel()
	n := newNode(t, onKruise)
	pod := n.pod("web", fakecri.Container{Name: "app", Program: fakecri.Program{TermDelay: 300 * time.Millisecond}})
	n.request("again", pod, force, "app")
	n.eventually("the stop is under way", func() bool { return len(n.stops()) == 1 })
	n.stop()
	n.eventually("kubelet has started the next", func() bool { return len(n.runtime.Instances()) == 2 })
	n.startDaemon()
	if got := n.ends("again"); got != succeeded {
		t.Errorf("ended as %s", got)
	}
	if stops := n.stops(); len(stops) != 1 {
		t.Errorf("%d stops, want 1: %+v", len(stops), stops)
	}
}

// A CRD that drops the record costs one write of it and not one with every look.
func TestWritesUnderOpenKruisesCRD(t *testing.T) {
	t.Parallel()
	n := newNode(t, onKruise)
	n.request("again", n.pod("web", app()), nil, "app")
	if got := n.ends("again"); got != succeeded {
		t.Errorf("ended as %s", got)
	}
	if writes := n.statusWrites(); len(writes) != 2 {
		t.Errorf("%d status writes, want 2 (begun, ended): %+v", len(writes), writes)
	}
	if n.current("again").Annotations[v1beta1.AnnotationInstances] == "" {
		t.Error("no record of what was stopped")
	}
}

func TestNothingIsStoppedWithoutARecordUnderOpenKruisesCRD(t *testing.T) {
	t.Parallel()
	n := newNode(t, onKruise, func(n *node) { n.refuseAnnotations = true })
	n.request("again", n.pod("web", app()), nil, "app")
	n.eventually("the record has been tried again and again", func() bool { return len(n.runtime.Calls("ContainerStatus")) > 3 })
	if stops := n.stops(); len(stops) != 0 {
		t.Errorf("%d stops", len(stops))
	}
}

// OpenKruise up to 1.9 stores no conditions, from which results are read elsewhere.
func TestResultIsCountedUnderOpenKruises19CRD(t *testing.T) {
	t.Parallel()
	n := newNode(t, onKruise, func(n *node) { n.alpha = true })
	n.request("again", n.pod("web", app()), nil, "app")
	n.eventually("the request ends", func() bool { return crr.Completed(n.current("again")) })
	n.eventually("the result is counted", func() bool { return n.counted("succeeded", crr.ReasonSucceeded) == 1 })
	n.eventually("the event is sent", func() bool { return strings.Contains(strings.Join(n.eventTexts(), "\n"), "ContainersRecreated") })
	if message := n.current("again").Status.Message; message != "" {
		t.Errorf("message %q, which OpenKruise's clients take for a failure", message)
	}
}

// counted reads refit_crr_completed_total.
func (n *node) counted(result, reason string) float64 {
	n.t.Helper()
	families, err := n.registry.Gather()
	if err != nil {
		n.t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "refit_crr_completed_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			values := map[string]string{}
			for _, label := range metric.GetLabel() {
				values[label.GetName()] = label.GetValue()
			}
			if values["result"] == result && values["reason"] == reason {
				return metric.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// OpenKruise's SidecarTerminator asks for it when the main containers of a job have ended.
func TestSidecarOfAFinishedPodIsStopped(t *testing.T) {
	t.Parallel()
	n := newNode(t, onKruise)
	pod := n.pod("job", fakecri.Container{Name: "mesh"})
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	pod.Status.Conditions = []corev1.PodCondition{{Type: v1beta1.ConditionSidecarTerminated, Status: corev1.ConditionTrue}}
	n.putPod(pod)
	n.runtime.ActAsKubelet(fakecri.Kubelet{Delay: func(int) time.Duration { return time.Hour }})
	n.request("sidecar-termination", pod, force, "mesh")
	if got := n.ends("sidecar-termination"); got != succeeded {
		t.Errorf("ended as %s: %s", got, n.current("sidecar-termination").Status.Message)
	}
	if stops := n.stops(); len(stops) != 1 {
		t.Errorf("%d stops, want 1", len(stops))
	}
}

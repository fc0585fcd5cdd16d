package podprobe_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/probe/podprobe"
)

// crowding returns markers with 300 probes, of which the first by name leave no space for the probes of m.
func crowding() []v1alpha1.PodProbeMarker {
	var all []v1alpha1.PodProbeMarker
	for _, name := range []string{"a", "b", "c"} {
		all = append(all, marker(name, func(m *v1alpha1.PodProbeMarker) {
			m.Spec.Probes = nil
			for i := range v1alpha1.MaxProbesOfMarker {
				p := httpProbe(fmt.Sprint(name, i), intstr.FromInt32(80))
				m.Spec.Probes = append(m.Spec.Probes, p)
			}
		}))
	}
	return all
}

// Conditions by which controllers decide may have been set before they were refused.
func TestAConditionThatIsRefusedIsRemoved(t *testing.T) {
	t.Parallel()
	for _, kind := range []corev1.PodConditionType{v1beta1.ConditionSidecarTerminated, v1beta1.ConditionSidecarSetUpgradable} {
		faulty := marker("m", func(m *v1alpha1.PodProbeMarker) { m.Spec.Probes[0].PodConditionType = string(kind) })
		l := &life{t: t, pod: applied(t, pod("a"), podprobe.Fields{Conditions: []corev1.PodCondition{{Type: kind, Status: corev1.ConditionTrue}}})}
		l.see([]v1alpha1.PodProbeMarker{faulty}, said(v1alpha1.ProbeSucceeded))
		l.carries(nil, "", 0, 1)
	}
}

// An idle game server whose probe has ended must not be deleted as idle for ever.
func TestMarksGoWithAProbeThatThePodCannotHave(t *testing.T) {
	t.Parallel()
	port := func(name string) v1alpha1.PodProbeMarker {
		return marker("m", func(m *v1alpha1.PodProbeMarker) {
			m.Spec.Probes[0].Probe = v1alpha1.ContainerProbeSpec{Probe: corev1.Probe{
				ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString(name)}},
			}}
		})
	}
	elsewhere := marker("m", func(m *v1alpha1.PodProbeMarker) { m.Spec.Probes[0].ContainerName = "absent" })
	for name, tc := range map[string]struct{ before, after []v1alpha1.PodProbeMarker }{
		"another container": {[]v1alpha1.PodProbeMarker{marker("m")}, []v1alpha1.PodProbeMarker{elsewhere}},
		"another port":      {[]v1alpha1.PodProbeMarker{port("http")}, []v1alpha1.PodProbeMarker{port("absent")}},
		"too many probes":   {[]v1alpha1.PodProbeMarker{marker("m")}, append(crowding(), marker("m"))},
	} {
		for still, last := range map[string]podprobe.States{"": nil, ", its result is still there": said(v1alpha1.ProbeSucceeded)} {
			t.Run(name+still, func(t *testing.T) {
				t.Parallel()
				l := &life{t: t, pod: pod("a")}
				l.see(tc.before, said(v1alpha1.ProbeSucceeded))
				l.carries(map[string]string{"free": "yes"}, "-10", 1, 1)
				l.see(tc.after, last)
				l.carries(nil, "", 0, 1)
				l.see(tc.before, said(v1alpha1.ProbeSucceeded))
				l.carries(map[string]string{"free": "yes"}, "-10", 1, 1)
			})
		}
	}
}

// The NodePodProbe has the new probe a moment later than the marker.
func TestMarksStayUntilAReplacedProbeHasAResult(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*v1alpha1.PodContainerProbe){
		"renamed":                          func(p *v1alpha1.PodContainerProbe) { p.Name = "free" },
		"of another container of the pod":  func(p *v1alpha1.PodContainerProbe) { p.ContainerName = "other" },
		"with another command in the same": func(p *v1alpha1.PodContainerProbe) { p.Probe.Exec.Command = []string{"free"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &life{t: t, pod: pod("a", func(p *corev1.Pod) {
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "other"})
			})}
			l.see([]v1alpha1.PodProbeMarker{marker("m")}, said(v1alpha1.ProbeSucceeded))
			l.writes = 0
			replaced := []v1alpha1.PodProbeMarker{marker("m", func(m *v1alpha1.PodProbeMarker) { change(&m.Spec.Probes[0]) })}
			l.see(replaced, said(v1alpha1.ProbeSucceeded)) // the daemon has the one before
			l.see(replaced, nil)
			l.carries(map[string]string{"free": "yes"}, "-10", 1, 0)
		})
	}
}

func TestMarksOfAVirtualPodGoWithAProbeThatIsNotInItsAnnotation(t *testing.T) {
	t.Parallel()
	large := marker("a", func(m *v1alpha1.PodProbeMarker) {
		m.Spec.Probes = nil
		for i := range 5 {
			p := httpProbe(fmt.Sprint("a", i), intstr.FromInt32(80))
			p.Probe.HTTPGet, p.Probe.Exec = nil, &corev1.ExecAction{Command: []string{strings.Repeat("x", 15<<10)}}
			m.Spec.Probes = append(m.Spec.Probes, p)
		}
	})
	first := func(change func(*v1alpha1.PodContainerProbe)) []v1alpha1.PodProbeMarker {
		return []v1alpha1.PodProbeMarker{marker("m", func(m *v1alpha1.PodProbeMarker) { change(&m.Spec.Probes[0]) })}
	}
	long := func(p *v1alpha1.PodContainerProbe) { p.Probe.Exec.Command = []string{strings.Repeat("x", 10<<10)} }
	free := map[string]string{"free": "yes"}
	for name, tc := range map[string]struct {
		after []v1alpha1.PodProbeMarker
		want  map[string]string
	}{
		"no such container":      {first(func(p *v1alpha1.PodContainerProbe) { p.ContainerName = "absent" }), nil},
		"no condition":           {first(func(p *v1alpha1.PodContainerProbe) { p.PodConditionType = "" }), nil},
		"the annotation is full": {append(first(long), large), nil},
		"still in it":            {first(long), free},
	} {
		for _, condition := range []bool{true, false} { // the sidecar removes it a moment later
			t.Run(fmt.Sprint(name, ", with the condition: ", condition), func(t *testing.T) {
				t.Parallel()
				there := pod("a", func(p *corev1.Pod) {
					p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: idle, Status: corev1.ConditionTrue})
				})
				fields, _ := podprobe.DesiredOnVirtualNode(there, compile(marker("m")), noon)
				if diff := cmp.Diff(free, fields.Labels); diff != "" {
					t.Fatalf("labels before (-want +got):\n%s", diff)
				}
				there = applied(t, there, fields)
				if !condition {
					there.Status.Conditions = there.Status.Conditions[:1]
				}
				fields, _ = podprobe.DesiredOnVirtualNode(there, compile(tc.after...), noon)
				if diff := cmp.Diff(tc.want, fields.Labels); diff != "" && len(tc.want)+len(fields.Labels) > 0 {
					t.Errorf("labels (-want +got):\n%s", diff)
				}
			})
		}
	}
}

package history_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/refit-project/refit/test/chaos/history/verdict"
)

const modeLabel = "mode"

// set is what a template, or a pod, has beside the image: a limit of CPU, and a label that the environment refers to.
func set(labels map[string]string, app *corev1.Container, cpu, mode string) {
	labels[modeLabel] = mode
	app.Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	app.Env = []corev1.EnvVar{{Name: "MODE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['" + modeLabel + "']"}}}}
}

// openFields is a governed shop whose template and pods have a CPU limit of 100m and the mode slow.
func openFields(t *testing.T) *governed {
	t.Helper()
	s := &governed{shop: openShop(t, 3)}
	for _, uid := range s.uids {
		s.has(2, "tester", uid, "100m", "slow")
		s.shows(2.5, uid, func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ContainerID = s.instance() }) // it was started with the mode
	}
	s.asks(3, "100m", "slow")
	s.policy(4, false, 0)
	s.policy(5, true, 1)
	return s
}

func (s *governed) asks(seconds float64, cpu, mode string) {
	s.t.Helper()
	s.templateWith(seconds, "app:1", func(template *corev1.PodTemplateSpec) { set(template.Labels, &template.Spec.Containers[0], cpu, mode) })
}

// has is the write of a limit and a mode by a user.
func (s *governed) has(seconds float64, by, uid, cpu, mode string) {
	s.t.Helper()
	s.unrecorded(uid, func(p *corev1.Pod) {
		p.Labels = maps.Clone(p.Labels)
		set(p.Labels, &p.Spec.Containers[0], cpu, mode)
	})
	s.write(seconds, ref{"patch", by, "pods", "", "chaos", uid}, 200, s.pods[uid])
}

// turns has the manager set the mode, after which the application is restarted within 3 s.
func (s *governed) turns(seconds float64, uid, cpu, mode string) {
	s.t.Helper()
	s.has(seconds, managerUser, uid, cpu, mode)
	s.down(seconds+1, uid)
	s.restarted(seconds+2, uid)
	s.up(seconds+3, uid)
}

func TestGoodUpdatesOfResourcesAndEnvironment(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]func(*governed){
		"resources, without a restart": func(s *governed) {
			s.asks(10, "200m", "slow")
			for n, uid := range s.uids {
				s.has(12+float64(n), managerUser, uid, "200m", "slow")
			}
			s.policy(20, true, s.generation)
		},
		"the environment, with one restart each": func(s *governed) {
			s.asks(10, "100m", "fast")
			for n, uid := range s.uids {
				s.turns(12+10*float64(n), uid, "100m", "fast")
			}
			s.policy(50, true, s.generation)
		},
		"both, and back in the middle": func(s *governed) {
			s.asks(10, "200m", "fast")
			s.turns(12, "w0", "200m", "fast")
			s.asks(20, "100m", "slow")
			s.turns(22, "w0", "100m", "slow")
			s.policy(30, true, s.generation)
		},
		"back before anything has stopped": func(s *governed) {
			s.asks(10, "100m", "fast")
			s.has(12, managerUser, "w0", "100m", "fast")
			s.asks(13, "100m", "slow")
			s.has(14, managerUser, "w0", "100m", "slow")
			s.policy(15, true, s.generation)
			s.asks(20, "100m", "fast")
			s.turns(22, "w1", "100m", "fast")
			s.asks(30, "100m", "slow")
			s.turns(32, "w1", "100m", "slow")
			s.policy(40, true, s.generation)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openFields(t)
			play(s)
			if violations := s.found(); len(violations) > 0 {
				t.Errorf("violations %v", violations)
			}
			if totals := s.check().Totals; totals.Templates == 0 || totals.Followers == 0 {
				t.Errorf("totals %+v: nothing was judged", totals)
			}
		})
	}
}

func TestPlantedUpdatesOfResourcesAndEnvironment(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		want, proof string
		plant       func(*governed)
	}{
		"a restart for a change of CPU": {want: "I22", proof: "was restarted 1 times; its template asked for 0 restarts", plant: func(s *governed) {
			s.asks(10, "200m", "slow")
			s.turns(12, "w0", "200m", "slow")
		}},
		"two restarts for one change of the environment": {want: "I22", proof: "was restarted 2 times; its template asked for 1 restarts", plant: func(s *governed) {
			s.asks(10, "100m", "fast")
			s.turns(12, "w0", "100m", "fast")
			s.restarted(18, "w0")
			s.up(19, "w0")
		}},
		"complete with another limit": {want: "I22", proof: "has the cpu of container app 100m, want 200m", plant: func(s *governed) {
			s.asks(10, "200m", "slow")
			s.has(12, managerUser, "w0", "200m", "slow")
			s.policy(20, true, s.generation)
		}},
		"a mode that no template had": {want: "I22", proof: "pod w0 got the label mode of container app wild, which its template has never had", plant: func(s *governed) {
			s.asks(10, "100m", "fast")
			s.turns(12, "w0", "100m", "wild")
		}},
		"two pods at a time": {want: "I19", proof: "begun by InPlaceUpdatePolicy web while 1 others were under way; at most 1 may be", plant: func(s *governed) {
			s.asks(10, "100m", "fast")
			s.has(12, managerUser, "w0", "100m", "fast")
			s.down(13, "w0")
			s.has(14, managerUser, "w1", "100m", "fast")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openFields(t)
			test.plant(s)
			i := slices.IndexFunc(s.found(), func(v verdict.Violation) bool {
				return v.Invariant == test.want && strings.Contains(v.String(), test.proof) && len(v.Proof) > 0
			})
			if i < 0 {
				t.Errorf("violations %v, want one of %s with %q and lines that prove it", s.found(), test.want, test.proof)
			}
		})
	}
}

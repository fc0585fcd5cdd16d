package history_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/verdict"
)

// governed is a shop whose Deployment has an InPlaceUpdatePolicy with InPlaceOnly. All pods have image app:1.
type governed struct {
	*shop
	generation int64
}

func openGoverned(t *testing.T) *governed {
	t.Helper()
	s := &governed{shop: openShop(t, 3)}
	s.template(3, "app:1")
	s.policy(4, false, 0)
	s.policy(5, true, 1)
	return s
}

// template is the next generation of the Deployment, with that image in its template.
func (s *governed) template(seconds float64, image string) {
	s.t.Helper()
	s.templateWith(seconds, image, func(*corev1.PodTemplateSpec) {})
}

func (s *governed) templateWith(seconds float64, image string, change func(*corev1.PodTemplateSpec)) {
	s.t.Helper()
	s.generation++
	s.revision++
	object := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "chaos", Name: "web", ResourceVersion: fmt.Sprint(s.revision), Generation: s.generation}}
	object.Spec.Replicas, object.Spec.Selector = new(int32(3)), &metav1.LabelSelector{MatchLabels: shopLabels}
	object.Spec.Template.Labels = maps.Clone(shopLabels)
	object.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: image}}
	change(&object.Spec.Template)
	s.watch(seconds, entry.KindWorkload, object)
}

// policy is the next version of the policy, which says whether the update to a generation is complete.
func (s *governed) policy(seconds float64, complete bool, generation int64) {
	s.t.Helper()
	s.revision++
	p := &refitv1alpha1.InPlaceUpdatePolicy{
		TypeMeta:   metav1.TypeMeta{Kind: refitv1alpha1.KindInPlaceUpdatePolicy, APIVersion: refitv1alpha1.GroupVersion().String()},
		ObjectMeta: metav1.ObjectMeta{Namespace: "chaos", Name: "web", UID: types.UID("policy"), ResourceVersion: fmt.Sprint(s.revision)},
	}
	p.Spec.TargetRef = refitv1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	p.Spec.PodUpdatePolicy, p.Spec.MaxUnavailable = refitv1alpha1.PodUpdateInPlaceOnly, new(intstr.FromInt32(1))
	p.Status.ObservedTargetGeneration = generation
	status := metav1.ConditionFalse
	if complete {
		status = metav1.ConditionTrue
	}
	p.Status.Conditions = []metav1.Condition{{Type: refitv1alpha1.ConditionReady, Status: status}}
	s.write(seconds, ref{"update", managerUser, entry.PolicyResource, "status", "chaos", "web"}, 200, p)
}

// begins is the write of an image by the manager, and gets the whole update of the pod, which takes 3 s.
func (s *governed) begins(seconds float64, uid, container, image string) {
	s.t.Helper()
	s.unrecorded(uid, func(p *corev1.Pod) {
		for i := range p.Spec.Containers {
			if p.Spec.Containers[i].Name == container {
				p.Spec.Containers[i].Image = image
			}
		}
	})
	s.write(seconds, ref{"patch", managerUser, "pods", "", "chaos", uid}, 200, s.pods[uid])
}

func (s *governed) gets(seconds float64, uid, image string) {
	s.t.Helper()
	s.begins(seconds, uid, "app", image)
	s.down(seconds+1, uid)
	s.restarted(seconds+2, uid)
	s.up(seconds+3, uid)
}

// restarted shows the next instance of the application.
func (s *governed) restarted(seconds float64, uid string) {
	s.t.Helper()
	s.shows(seconds, uid, func(p *corev1.Pod) {
		readiness(p, corev1.ConditionFalse)
		p.Status.ContainerStatuses[0].ContainerID, p.Status.ContainerStatuses[0].Image = s.instance(), p.Spec.Containers[0].Image
		p.Status.ContainerStatuses[0].RestartCount++
	})
}

// all get the image, one after the other, and the policy calls that complete.
func (s *governed) all(seconds float64, image string) {
	s.t.Helper()
	for n, uid := range s.uids {
		s.gets(seconds+float64(10*n), uid, image)
	}
	s.policy(seconds+float64(10*len(s.uids)), true, s.generation)
}

// found are the violations of what is said of policies, and of the availability of their pods.
func (s *governed) found() (violations []verdict.Violation) {
	s.t.Helper()
	for _, v := range s.check().Violations {
		if slices.Contains([]string{"I17", "I18", "I19", "I20", "I22"}, v.Invariant) {
			violations = append(violations, v)
		}
	}
	return violations
}

// controllerDeletes is the deletion of a pod by the controller of its ReplicaSet.
func (s *governed) controllerDeletes(seconds float64, uid string, phase corev1.PodPhase) {
	s.t.Helper()
	s.unrecorded(uid, func(p *corev1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds, p.Status.Phase = new(metav1.NewTime(at(seconds))), new(int64(30)), phase
	})
	s.write(seconds, ref{"delete", "system:serviceaccount:kube-system:replicaset-controller", "pods", "", "chaos", uid}, 200, s.pods[uid])
}

func TestGoodUpdatesOfWorkloads(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]func(*governed){
		"one pod after the other, and back": func(s *governed) {
			s.template(10, "app:2")
			s.all(12, "app:2")
			s.template(60, "app:1")
			s.all(62, "app:1")
		},
		"another template in the middle": func(s *governed) {
			s.template(10, "app:2")
			s.gets(12, "w0", "app:2")
			s.template(20, "app:3")
			s.all(22, "app:3")
		},
		"back in the middle": func(s *governed) {
			s.template(10, "app:2")
			s.gets(12, "w0", "app:2")
			s.template(20, "app:1")
			s.gets(22, "w0", "app:1")
			s.policy(30, true, s.generation)
		},
		"an update that an outage holds up": func(s *governed) {
			s.template(10, "app:2")
			s.fault(entry.KindAPIServerStop, 12, 200, true)
			s.template(220, "app:1")
			s.policy(230, true, s.generation)
		},
		"a pod that has failed is replaced": func(s *governed) {
			s.template(10, "app:2")
			s.controllerDeletes(12, "w1", corev1.PodFailed)
			s.arrive(14)
			s.gets(22, "w0", "app:2")
			s.gets(32, "w2", "app:2")
			s.gets(42, "w3", "app:2")
			s.policy(50, true, s.generation)
		},
		"a node is lost, and its containers are started once more": func(s *governed) {
			s.template(10, "app:2")
			s.faultOn("node-1", entry.KindNodeLost, 11, 60)
			s.restarted(50, "w2")
			s.up(51, "w2")
			s.all(62, "app:2")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openGoverned(t)
			play(s)
			if violations := s.found(); len(violations) > 0 {
				t.Errorf("violations %v", violations)
			}
			if totals := s.check().Totals; totals.Templates == 0 {
				t.Errorf("totals %+v: nothing was judged", totals)
			}
		})
	}
}

func TestPlantedUpdatesOfWorkloads(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		want, proof string
		plant       func(*governed)
	}{
		"two pods at a time": {want: "I19", proof: "begun by InPlaceUpdatePolicy web while 1 others were under way; at most 1 may be", plant: func(s *governed) {
			s.template(10, "app:2")
			s.begins(12, "w0", "app", "app:2")
			s.down(13, "w0")
			s.begins(14, "w1", "app", "app:2")
		}},
		"two endpoints at a time": {want: "I17", proof: "2 pods that served are out of web by Refit", plant: func(s *governed) {
			s.template(10, "app:2")
			s.begins(12, "w0", "app", "app:2")
			s.begins(12.5, "w1", "app", "app:2")
			s.down(14, "w0", "w1")
		}},
		"beside a pod that is not ready": {want: "I18", proof: "taken by InPlaceUpdatePolicy web, with 0 under way, 1 not ready", plant: func(s *governed) {
			s.down(7, "w0")
			s.template(20, "app:2")
			s.begins(22, "w1", "app", "app:2")
		}},
		"while a budget allows nothing": {want: "I20", proof: "taken by InPlaceUpdatePolicy web", plant: func(s *governed) {
			s.budget(6, 0, 3, 3)
			s.template(20, "app:2")
			s.begins(22, "w1", "app", "app:2")
		}},
		"complete before all pods have it": {want: "I22", proof: "pod w2 has the image of container app app:1, want app:2", plant: func(s *governed) {
			s.template(10, "app:2")
			s.gets(12, "w0", "app:2")
			s.gets(22, "w1", "app:2")
			s.policy(30, true, s.generation)
		}},
		"never complete": {want: "I22", proof: "the update to image of container app app:2 is not complete after", plant: func(s *governed) {
			s.template(10, "app:2")
			s.gets(12, "w0", "app:2")
		}},
		"a pod gets the template twice": {want: "I22", proof: "got another image of container app 3 times; its template changed it 1 times", plant: func(s *governed) {
			s.template(10, "app:2")
			s.gets(12, "w0", "app:2")
			s.gets(22, "w0", "app:1")
			s.gets(32, "w0", "app:2")
		}},
		"an application is restarted twice for one change": {want: "I22", proof: "was restarted 2 times; its template asked for 1 restarts", plant: func(s *governed) {
			s.template(10, "app:2")
			s.gets(12, "w0", "app:2")
			s.restarted(18, "w0")
			s.up(19, "w0")
		}},
		"an image that no template had": {want: "I22", proof: "which its template has never had", plant: func(s *governed) {
			s.template(10, "app:2")
			s.gets(12, "w0", "app:3")
		}},
		"another container": {want: "I22", proof: "pod w0 got the image of container x1 x1:2", plant: func(s *governed) {
			s.template(10, "app:2")
			s.begins(12, "w0", "x1", "x1:2")
		}},
		"a controller replaces a pod": {want: "I22", proof: "was deleted by system:serviceaccount:kube-system:replicaset-controller, with podUpdatePolicy InPlaceOnly", plant: func(s *governed) {
			s.template(10, "app:2")
			s.controllerDeletes(12, "w1", corev1.PodRunning)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openGoverned(t)
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

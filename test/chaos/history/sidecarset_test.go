package history_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/history/entry"
)

// sidecarSet is a version of the SidecarSet "side", with that image, of which two pods may be unavailable.
func (s *fixture) sidecarSet(seconds float64, image string) {
	s.t.Helper()
	s.revision++
	set := &v1beta1.SidecarSet{
		TypeMeta:   metav1.TypeMeta{Kind: "SidecarSet", APIVersion: v1beta1.GroupVersion().String()},
		ObjectMeta: metav1.ObjectMeta{Name: "side", UID: "side-uid", ResourceVersion: fmt.Sprint(s.revision)},
	}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "chaos"}}
	set.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "side", Image: image}}}
	set.Spec.UpdateStrategy.MaxUnavailable = new(intstr.FromInt32(2))
	s.write(seconds, ref{"update", user, entry.SetResource, "", "", "side"}, 200, set)
}

// fleet is pods web-0 to web-5 that are ready with the sidecar, three of each of two workloads, and a SidecarSet that has a
// newer image.
func fleet(s *fixture) {
	s.sidecarSet(1, "side:1")
	for n := range 6 {
		uid := fmt.Sprintf("web-%d", n)
		s.pods[uid] = &corev1.Pod{
			TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "chaos", Name: uid, UID: types.UID(uid), Labels: map[string]string{"app": "web"},
				Annotations:     map[string]string{v1beta1.AnnotationSidecarSetList: "side"},
				OwnerReferences: []metav1.OwnerReference{{UID: types.UID(fmt.Sprintf("workload-%d", n/3)), Controller: new(true)}},
			},
		}
		s.pods[uid].Spec.NodeName = "node-1"
		s.pods[uid].Spec.Containers = []corev1.Container{{Name: "app"}, {Name: "side", Image: "side:1", Env: []corev1.EnvVar{{Name: v1beta1.EnvSidecarInjected, Value: "true"}}}}
		s.pods[uid].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", ContainerID: "app"}, {Name: "side", ContainerID: "side"}}
		s.stored(2, uid, "status", func(pod *corev1.Pod) { readiness(pod, corev1.ConditionTrue) })
	}
	s.sidecarSet(10, "side:2")
}

func readiness(pod *corev1.Pod, status corev1.ConditionStatus) {
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
}

// stored is the next version of a pod of the fleet, written through a subresource.
func (s *fixture) stored(seconds float64, uid, subresource string, change func(*corev1.Pod)) {
	s.t.Helper()
	s.unrecorded(uid, change)
	s.write(seconds, ref{"patch", kubeletUser, "pods", subresource, "chaos", uid}, 200, s.pods[uid])
}

// unrecorded is the next version of a pod whose line is missing.
func (s *fixture) unrecorded(uid string, change func(*corev1.Pod)) {
	s.revision++
	pod := s.pods[uid].DeepCopy()
	pod.ResourceVersion = fmt.Sprint(s.revision)
	change(pod)
	s.pods[uid] = pod
}

// begins is the begin of an update, which is over when the pod is ready again.
func (s *fixture) begins(seconds float64, uid, image string) {
	s.t.Helper()
	s.stored(seconds, uid, "", func(pod *corev1.Pod) { pod.Spec.Containers[1].Image = image })
}

func readyAgain(pod *corev1.Pod) {
	pod.Status.ContainerStatuses[1].ContainerID += "+"
	pod.Status.ContainerStatuses[1].RestartCount++
	readiness(pod, corev1.ConditionTrue)
}

func (s *fixture) ends(seconds float64, uid string) {
	s.t.Helper()
	s.stored(seconds, uid, "status", func(pod *corev1.Pod) { readiness(pod, corev1.ConditionFalse) })
	s.stored(seconds+0.5, uid, "status", readyAgain)
}

func (s *fixture) allUpdated(seconds float64, from int, image string) {
	s.t.Helper()
	for n := from; n < 6; n++ {
		uid := fmt.Sprintf("web-%d", n)
		s.begins(seconds+float64(2*n), uid, image)
		s.ends(seconds+float64(2*n)+1, uid)
	}
}

func TestGoodRolloutsOfSidecarSets(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		play    func(*fixture)
		updates int
	}{
		"one after the other": {updates: 6, play: func(s *fixture) { s.allUpdated(20, 0, "side:2") }},
		"two at a time, and back": {updates: 12, play: func(s *fixture) {
			for round, image := range []string{"side:2", "side:1"} {
				begin := float64(20 + 40*round)
				s.sidecarSet(begin, image)
				for n := 0; n < 6; n += 2 {
					s.begins(begin+float64(n)+1, fmt.Sprintf("web-%d", n), image)
					s.begins(begin+float64(n)+1.1, fmt.Sprintf("web-%d", n+1), image)
					s.ends(begin+float64(n)+1.2, fmt.Sprintf("web-%d", n))
					s.ends(begin+float64(n)+1.2, fmt.Sprintf("web-%d", n+1))
				}
			}
		}},
		"a pod is deleted in its update, and another takes its place": {updates: 6, play: func(s *fixture) {
			s.begins(20, "web-0", "side:2")
			s.begins(20, "web-1", "side:2")
			s.revision++
			gone := s.pods["web-0"].DeepCopy()
			gone.ResourceVersion = fmt.Sprint(s.revision)
			s.write(20.5, ref{"delete", user, "pods", "", "chaos", "web-0"}, 200, gone)
			s.begins(20.6, "web-3", "side:2")
			s.ends(21, "web-1")
			s.ends(21, "web-3")
			s.begins(30, "web-2", "side:2")
			s.ends(31, "web-2")
			s.allUpdated(40, 4, "side:2")
		}},
		"the line of an update died with the API server": {updates: 6, play: func(s *fixture) {
			s.begins(20, "web-0", "side:2")
			s.unrecorded("web-1", func(pod *corev1.Pod) { pod.Spec.Containers[1].Image = "side:2" })
			s.fault(entry.KindAPIServerKill, 20.1, 25, true)
			s.ends(26, "web-0")
			s.begins(30, "web-2", "side:2")
			s.begins(30, "web-3", "side:2")
			s.ends(31, "web-1")
			s.ends(32, "web-2")
			s.ends(32, "web-3")
			s.allUpdated(40, 4, "side:2")
		}},
		"a pod of another namespace with these labels": {updates: 6, play: func(s *fixture) {
			s.stored(15, "web-0", "", func(pod *corev1.Pod) { // as if it had been created there
				pod.UID, pod.Namespace, pod.Annotations = "other", "elsewhere", nil
			})
			s.pods["web-0"].UID, s.pods["web-0"].Namespace = "web-0", "chaos"
			s.pods["web-0"].Annotations = map[string]string{v1beta1.AnnotationSidecarSetList: "side"}
			s.allUpdated(20, 0, "side:2")
		}},
		"removed before its end": {updates: 1, play: func(s *fixture) {
			s.begins(20, "web-0", "side:2")
			s.write(21.5, ref{"delete", user, entry.SetResource, "", "", "side"}, 200, nil)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := opening(t)
			fleet(s)
			test.play(s)
			if report := s.check(); !report.OK() || report.Totals.SidecarUpdates != test.updates {
				t.Errorf("violations %v, refused %v, %d updates", report.Violations, report.Refused, report.Totals.SidecarUpdates)
			}
		})
	}
}

func TestPlantedRolloutsOfSidecarSets(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]planted{
		"three at a time where two may be": {want: "I15", proof: "updated while 2 others", plant: func(s *fixture) {
			s.begins(20, "web-0", "side:2")
			s.begins(20, "web-1", "side:2")
			s.begins(20, "web-3", "side:2")
		}},
		"three at a time, after lines that could be missing": {want: "I15", proof: "updated while 2 others", plant: func(s *fixture) {
			s.fault(entry.KindAPIServerKill, 0.5, 1, true)
			s.begins(60, "web-0", "side:2")
			s.begins(60, "web-1", "side:2")
			s.begins(60, "web-3", "side:2")
		}},
		"the last of a workload": {want: "I15", proof: "the last of its workload", plant: func(s *fixture) {
			for _, uid := range []string{"web-1", "web-2"} {
				s.stored(15, uid, "status", func(pod *corev1.Pod) { readiness(pod, corev1.ConditionFalse) })
			}
			s.begins(30, "web-0", "side:2")
		}},
		"a pod twice, as by a manager that has forgotten": {want: "I15", proof: "updated to side:2 2 times", plant: func(s *fixture) {
			s.begins(20, "web-0", "side:2")
			s.ends(21, "web-0")
			s.begins(30, "web-0", "side:1")
			s.begins(31, "web-0", "side:2")
		}},
		"an image that the SidecarSet never had": {want: "I15", proof: "never had", plant: func(s *fixture) {
			s.begins(20, "web-0", "side:7")
		}},
		"another container is restarted": {want: "I15", proof: "container app was restarted", plant: func(s *fixture) {
			s.stored(20, "web-0", "status", func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].ContainerID = "app+" })
		}},
		"half an injection": {want: "I15", proof: "has the sidecar: false, says so: true", plant: func(s *fixture) {
			s.stored(20, "web-0", "", func(pod *corev1.Pod) { pod.Spec.Containers = pod.Spec.Containers[:1] })
		}},
		"one pod is left": {want: "I15", proof: "pod web-0 has the image side:1", plant: func(s *fixture) { s.allUpdated(20, 1, "side:2") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found(t, planted{want: test.want, proof: test.proof, plant: func(s *fixture) { fleet(s); test.plant(s) }})
		})
	}
}

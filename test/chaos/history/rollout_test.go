package history_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/history/entry"
)

// rollout is a RestartRollout as it is stored; ended is the type of the condition of its outcome.
func (s *fixture) rollout(seconds float64, verb, ended string, pods int32, most int) {
	s.t.Helper()
	s.revision++
	r := &refitv1alpha1.RestartRollout{
		TypeMeta:   metav1.TypeMeta{Kind: refitv1alpha1.KindRestartRollout, APIVersion: refitv1alpha1.GroupVersion().String()},
		ObjectMeta: metav1.ObjectMeta{Namespace: "chaos", Name: "all", UID: "all-uid", ResourceVersion: fmt.Sprint(s.revision)},
	}
	r.Spec.MaxUnavailable = new(intstr.FromInt(most))
	r.Status.MatchedPods = pods
	if ended != "" {
		r.Status.Conditions = []metav1.Condition{{Type: "Finished", Status: metav1.ConditionTrue}, {Type: ended, Status: metav1.ConditionTrue}}
	}
	s.write(seconds, ref{verb, managerUser, entry.RolloutResource, "", "chaos", "all"}, 200, r)
}

// readyPod is kubelet's word on a pod that is ready as a whole, or not.
func (s *fixture) readyPod(seconds float64, uid, containerID string, ready bool) {
	s.t.Helper()
	s.pod(seconds, uid, containerID, ready)
	s.revision++
	pod := s.pods[uid].DeepCopy()
	pod.ResourceVersion = fmt.Sprint(s.revision)
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
	s.pods[uid] = pod
	s.write(seconds+0.01, ref{"patch", kubeletUser, "pods", "status", "chaos", "pod-" + uid}, 200, pod)
}

// ofRollout is a request of the rollout "all".
func ofRollout(r *v1beta1.ContainerRecreateRequest) {
	r.Labels[refitv1alpha1.LabelRestartRollout] = "all-uid"
}

// restartFor restarts a pod for the rollout, within three seconds.
func restartFor(s *fixture, second float64, name, uid, old, next string) {
	s.begin(second, second+0.9, name, uid, old, ofRollout)
	s.stop(second+1, uid, old)
	s.app(second+1.02, uid, "exit signal")
	s.readyPod(second+1.1, uid, old, false)
	s.app(second+2, uid, "start")
	s.readyPod(second+2.1, uid, next, true)
	s.complete(second+2.2, name, "")
}

// twoPods are ready before the rollout.
func twoPods(s *fixture) {
	for _, uid := range []string{"uid-1", "uid-2"} {
		if uid != "uid-1" {
			s.app(1.1, uid, "start")
		}
		s.readyPod(1.2, uid, "c"+uid[len("uid-"):], true)
	}
}

func TestGoodRollouts(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]func(*fixture){
		"one after the other": func(s *fixture) {
			s.rollout(2, "create", "", 0, 1)
			restartFor(s, 10, "r1", "uid-1", "c1", "d1")
			restartFor(s, 20, "r2", "uid-2", "c2", "d2")
			s.rollout(30, "patch", "Succeeded", 2, 1)
		},
		"two at a time": func(s *fixture) {
			s.rollout(2, "create", "", 0, 2)
			restartFor(s, 10, "r1", "uid-1", "c1", "d1")
			restartFor(s, 10.5, "r2", "uid-2", "c2", "d2")
			s.rollout(30, "patch", "Succeeded", 2, 2)
		},
		"two at a time, of which one was not ready anyway": func(s *fixture) {
			s.rollout(2, "create", "", 0, 1)
			s.readyPod(4, "uid-2", "c2", false)
			restartFor(s, 10.5, "r2", "uid-2", "c2", "d2")
			restartFor(s, 20, "r1", "uid-1", "c1", "d1")
			s.rollout(30, "patch", "Succeeded", 2, 1)
		},
		"the line of its end died with the API server": func(s *fixture) {
			s.rollout(2, "create", "", 0, 1)
			s.rollout(3, "patch", "", 2, 1)
			s.fault(entry.KindAPIServerKill, 10, 12, true)
		},
		"restarted soon after an outage in which another had become unavailable": func(s *fixture) {
			s.rollout(2, "create", "", 0, 1)
			s.fault(entry.KindAPIServerStop, 3, 40, true)
			s.readyPod(35, "uid-2", "c2", false)
			restartFor(s, 42, "r1", "uid-1", "c1", "d1")
			restartFor(s, 50, "r2", "uid-2", "c2", "d2")
			s.rollout(60, "patch", "Succeeded", 2, 1)
		},
		"deleted before its end": func(s *fixture) {
			s.rollout(2, "create", "", 0, 1)
			s.write(5, ref{"delete", user, entry.RolloutResource, "", "chaos", "all"}, 200, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := opening(t)
			twoPods(s)
			play(s)
			if report := s.check(); !report.OK() || report.Totals.Rollouts != 1 {
				t.Errorf("violations %v, refused %v, %+v", report.Violations, report.Refused, report.Totals)
			}
		})
	}
}

func TestPlantedRollouts(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]planted{
		"two at a time where one may be": {want: "I13", proof: "pod pod-uid-2 is the 2th", plant: func(s *fixture) {
			s.rollout(2, "create", "", 0, 1)
			restartFor(s, 10, "r1", "uid-1", "c1", "d1")
			restartFor(s, 10.5, "r2", "uid-2", "c2", "d2")
		}},
		"a restart beside a pod that has not been ready for long": {want: "I13", proof: "pod pod-uid-1 is the 2th", plant: func(s *fixture) {
			s.rollout(2, "create", "", 0, 1)
			s.readyPod(4, "uid-2", "c2", false)
			restartFor(s, 10, "r1", "uid-1", "c1", "d1")
		}},
		"a pod twice, as by a manager that has forgotten": {want: "I13", proof: "restarted pod uid-1 2 times", plant: func(s *fixture) {
			s.rollout(2, "create", "", 0, 1)
			restartFor(s, 10, "r1", "uid-1", "c1", "d1")
			restartFor(s, 20, "r2", "uid-1", "d1", "e1")
		}},
		"succeeded with a pod left": {want: "I13", proof: "1 of 2 pods were restarted", plant: func(s *fixture) {
			s.rollout(2, "create", "", 0, 1)
			restartFor(s, 10, "r1", "uid-1", "c1", "d1")
			s.rollout(30, "patch", "Succeeded", 2, 1)
		}},
		"succeeded although a restart has failed": {want: "I13", proof: "1 of 2 pods were restarted", plant: func(s *fixture) {
			s.rollout(2, "create", "", 0, 1)
			restartFor(s, 10, "r1", "uid-1", "c1", "d1")
			s.create(20, "r2", "uid-2", "c2", ofRollout)
			s.complete(21, "r2", "it did not start")
			s.rollout(30, "patch", "Succeeded", 2, 1)
		}},
		"without an end, long after the API server was killed": {want: "I13", proof: "not ended after", plant: func(s *fixture) {
			s.fault(entry.KindAPIServerKill, 1.5, 2, true)
			s.rollout(20, "create", "", 0, 1)
			s.rollout(21, "patch", "", 2, 1)
		}},
		"a restart beside a pod that has not been ready since an outage": {want: "I13", proof: "pod pod-uid-1 is the 2th", plant: func(s *fixture) {
			s.rollout(2, "create", "", 0, 1)
			s.fault(entry.KindAPIServerStop, 3, 40, true)
			s.readyPod(35, "uid-2", "c2", false)
			restartFor(s, 60, "r1", "uid-1", "c1", "d1")
		}},
		"called failed although all pods were restarted": {want: "I13", proof: "is called failed", plant: func(s *fixture) {
			s.rollout(2, "create", "", 0, 1)
			restartFor(s, 10, "r1", "uid-1", "c1", "d1")
			restartFor(s, 20, "r2", "uid-2", "c2", "d2")
			s.rollout(30, "patch", "Failed", 2, 1)
		}},
		"without an end": {want: "I13", proof: "not ended after", plant: func(s *fixture) {
			s.rollout(2, "create", "", 0, 1)
			s.rollout(3, "patch", "", 2, 1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found(t, planted{want: test.want, proof: test.proof, plant: func(s *fixture) { twoPods(s); test.plant(s) }})
		})
	}
}

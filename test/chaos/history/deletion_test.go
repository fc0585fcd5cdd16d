package history_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/test/chaos/history/entry"
)

// endsDeleted is a pod that is told to end, and that kubelet deletes when it has ended. Its metadata says that the deletion was
// asked for at that second.
func endsDeleted(s *fixture, asked float64) {
	s.t.Helper()
	const grace = 2
	s.app(asked+0.3, "uid-1", "SIGTERM")
	s.app(asked+0.4, "uid-1", "exit signal")
	s.pod(asked+8, "uid-1", "c1", false)
	pod := s.pods["uid-1"]
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.NewTime(at(asked+grace).Truncate(1e9))), new(int64(grace))
	pod.Status.ContainerStatuses[0].State.Terminated = &corev1.ContainerStateTerminated{
		ContainerID: id("c1"), Reason: "Completed", StartedAt: metav1.NewTime(at(1)), FinishedAt: metav1.NewTime(at(asked + 1)),
	}
	s.write(asked+8.1, ref{"patch", kubeletUser, "pods", "status", "chaos", "pod-uid-1"}, 200, pod)
	s.write(asked+8.2, ref{"delete", kubeletUser, "pods", "", "chaos", "pod-uid-1"}, 200, nil)
}

func TestDeletionsExplainTheEndOfApplications(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]func(*fixture){
		"evicted": func(s *fixture) {
			s.write(5, ref{"create", managerUser, "pods", "eviction", "chaos", "pod-uid-1"}, 201, nil)
			endsDeleted(s, 5)
		},
		"deleted just before the API server was killed, and not logged": func(s *fixture) {
			s.fault(entry.KindAPIServerKill, 6, 12, true)
			endsDeleted(s, 5.7)
		},
		"deleted while the API server ended, and not logged": func(s *fixture) {
			s.fault(entry.KindAPIServerStop, 3, 12, true)
			endsDeleted(s, 5.7)
		},
	} {
		t.Run(name, func(t *testing.T) { clean(t, play) })
	}
}

func TestPlantedEndsWithoutADeletion(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]planted{
		"deleted by nobody, and the API server was up": {want: "I1", proof: "of a pod that is deleted until 10:00:07", plant: func(s *fixture) { endsDeleted(s, 5) }},
		"deleted by nobody, long before the API server was killed": {want: "I1", proof: "no stop of its own explains", plant: func(s *fixture) {
			endsDeleted(s, 5)
			s.fault(entry.KindAPIServerKill, 20, 26, true)
		}},
		"told to end before its deletion": {want: "I1", proof: "no stop of its own explains", plant: func(s *fixture) {
			s.fault(entry.KindAPIServerKill, 9, 15, true)
			s.app(4, "uid-1", "SIGTERM")
			endsDeleted(s, 8.5)
		}},
		"an eviction that was refused": {want: "I1", proof: "no stop of its own explains", plant: func(s *fixture) {
			s.write(5, ref{"create", managerUser, "pods", "eviction", "chaos", "pod-uid-1"}, 429, nil)
			endsDeleted(s, 5)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found(t, test)
		})
	}
}

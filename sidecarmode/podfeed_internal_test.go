package sidecarmode

import (
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// All plugins look at the pod while it changes. Whoever waits for a change hears of it, and sees the latest.
func TestPodIsSeenByManyAtOnce(t *testing.T) {
	t.Parallel()
	const last = 500
	f := newPodFeed()
	var wg sync.WaitGroup
	for range 8 {
		changes, end := f.changes()
		wg.Go(func() {
			defer end()
			for {
				<-changes
				if pod := f.latest(); pod != nil && pod.ResourceVersion == strconv.Itoa(last) {
					return
				}
			}
		})
	}
	for i := range last + 1 {
		f.set(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(i)}})
	}
	wg.Wait()
	if len(f.waiting) != 0 {
		t.Errorf("%d still wait", len(f.waiting))
	}
}

func TestOthersStarted(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	tests := map[string]struct {
		status corev1.ContainerStatus
		want   bool
	}{
		"no status yet":     {corev1.ContainerStatus{Name: "other"}, false},
		"starting":          {corev1.ContainerStatus{Name: "app", Started: &no}, false},
		"started":           {corev1.ContainerStatus{Name: "app", Started: &yes}, true},
		"ended already":     {corev1.ContainerStatus{Name: "app", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}, true},
		"in a crash loop":   {corev1.ContainerStatus{Name: "app", LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}, true},
		"ours is not asked": {corev1.ContainerStatus{Name: "refit-sidecar", Started: &yes}, false},
	}
	for name, tt := range tests {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}, {Name: "refit-sidecar"}}}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{tt.status}
		if got := othersStarted(pod, "refit-sidecar"); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

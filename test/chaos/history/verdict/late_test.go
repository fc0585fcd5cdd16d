package verdict_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/history/model"
	"github.com/refit-project/refit/test/chaos/history/verdict"
)

// run has a pod whose container was started so often, a minute apart, and wrote its first line so much later.
func run(starts int, late time.Duration) *verdict.Judgement {
	p := &model.Pod{Instances: map[string][]*model.Instance{}}
	for n := range starts {
		at := time.Unix(1_700_000_000, 0).Add(time.Duration(n) * time.Minute)
		status := corev1.ContainerStatus{Name: "app", ContainerID: fmt.Sprintf("containerd://%d", n)}
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at)}
		p.Statuses = append(p.Statuses, entry.Write{Pod: &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{status}}}})
		if n%10 == 5 {
			continue // it was ended before its first line
		}
		instance := &model.Instance{}
		instance.Start.Time = at.Add(late)
		p.Instances["app"] = append(p.Instances["app"], instance)
	}
	return &verdict.Judgement{Model: &model.Model{Pods: map[string]*model.Pod{"uid": p}}}
}

func TestLateIsWhatProgramsTakeToTheirFirstLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		starts     int
		late, want time.Duration
	}{
		{40, 200 * time.Millisecond, 0}, // kubelet reports whole seconds
		{40, 6 * time.Second, 5 * time.Second},
		{15, 6 * time.Second, 0},
	} {
		if got := run(tt.starts, tt.late).Late(); got != tt.want {
			t.Errorf("%d starts %s late: %s, want %s", tt.starts, tt.late, got, tt.want)
		}
	}
}

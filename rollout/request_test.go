package rollout_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/rollout"
)

func TestRequestHasWhatTheRolloutAsksFor(t *testing.T) {
	t.Parallel()
	f := newFixture(1, func(s *v1alpha1.RestartRolloutSpec) { s.Containers = v1alpha1.RolloutContainers("app", "log") })
	f.look()
	if got := f.last.Start[0].Spec.ActiveDeadlineSeconds; got == nil || *got != 600 {
		t.Errorf("deadline %v: a rollout would wait for one pod without end", got)
	}
	f = newFixture(1, func(s *v1alpha1.RestartRolloutSpec) {
		s.Containers = v1alpha1.RolloutContainers("app", "log")
		s.DrainSeconds = new(int32(7))
		s.Pod = v1alpha1.PodRestart{
			ActiveDeadlineSeconds: new(int64(60)), TerminationGracePeriodSeconds: new(int64(5)), ContainerOrder: v1alpha1.ContainerOrderReady,
		}
	})
	f.look()
	got := f.last.Start[0]
	for i := range got.Spec.Containers {
		got.Spec.Containers[i].StatusContext = nil // of the admission in the fixture
	}
	want := v1beta1.ContainerRecreateRequestSpec{
		PodName: "web-0", Containers: []v1beta1.ContainerRecreateRequestContainer{{Name: "app"}, {Name: "log"}}, ActiveDeadlineSeconds: new(int64(60)),
		Strategy: &v1beta1.ContainerRecreateRequestStrategy{
			TerminationGracePeriodSeconds: new(int64(5)), UnreadyGracePeriodSeconds: new(int64(7)), OrderedRecreate: true,
		},
	}
	if diff := cmp.Diff(want, got.Spec); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	annotations := map[string]string{v1beta1.AnnotationRequestedBy: "alice", v1beta1.AnnotationReason: "leak"}
	if diff := cmp.Diff(annotations, got.Annotations); diff != "" || !metav1.IsControlledBy(got, f.rollout) || got.Labels[v1alpha1.LabelRestartRollout] != "rollout" {
		t.Errorf("%+v\n(-want +got):\n%s", got.ObjectMeta, diff)
	}
}

func TestRequestOfARolloutWithoutAReasonHasNone(t *testing.T) {
	t.Parallel()
	f := newFixture(1)
	delete(f.rollout.Annotations, v1beta1.AnnotationReason)
	f.look()
	if _, ok := f.last.Start[0].Annotations[v1beta1.AnnotationReason]; ok {
		t.Errorf("%+v", f.last.Start[0].Annotations)
	}
}

// Names of pods that do not end with a number, and equal numbers, are in the order of the names.
func TestOrderOfPods(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kind string
		want []string
	}{
		"of a StatefulSet": {"StatefulSet", []string{"web-10", "web-9", "a-1", "web-1", "web-x"}},
		"of others":        {"CloneSet", []string{"a-1", "web-1", "web-10", "web-9", "web-x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(0, maxUnavailable("100%"))
			f.rollout.Spec.TargetRef.Kind = tt.kind
			for _, name := range []string{"web-1", "web-x", "web-9", "a-1", "web-10"} {
				pod := newPod(0, start.Add(-1))
				pod.Name, pod.UID = name, "uid-"+pod.UID
				f.observed.Pods = append(f.observed.Pods, pod)
			}
			if diff := cmp.Diff(tt.want, f.look()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	f := newFixture(2, maxUnavailable("100%"))
	f.rollout.Spec.TargetRef = nil // pods by labels
	if diff := cmp.Diff([]string{"web-0", "web-1"}, f.look()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSelectorOfAWorkload(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		spec    any
		matches bool
		refused bool
	}{
		"labels":                    {spec: map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}}, matches: true},
		"labels of others":          {spec: map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "db"}}}},
		"no selector":               {spec: map[string]any{}, matches: true},
		"no object":                 {spec: map[string]any{"selector": "app=web"}, refused: true},
		"another type":              {spec: map[string]any{"selector": map[string]any{"matchLabels": "app=web"}}, refused: true},
		"an operator that is none":  {spec: map[string]any{"selector": map[string]any{"matchExpressions": []any{map[string]any{"key": "app", "operator": "Like"}}}}, refused: true},
		"an expression that is met": {spec: map[string]any{"selector": map[string]any{"matchExpressions": []any{map[string]any{"key": "app", "operator": "Exists"}}}}, matches: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			workload := &unstructured.Unstructured{Object: map[string]any{"kind": "CloneSet", "metadata": map[string]any{"name": "web"}, "spec": tt.spec}}
			selector, err := rollout.WorkloadSelector(workload)
			if tt.refused {
				if err == nil || !strings.HasPrefix(err.Error(), "selector of CloneSet web: ") {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil || selector.Matches(labels.Set{"app": "web"}) != tt.matches {
				t.Errorf("%v, %v", selector, err)
			}
		})
	}
}

// What the API server has refused is kept, with the messages of webhooks cut and at most ten of them.
func TestRefusalsAreRecorded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2*result.MaxMessage)
	old := v1alpha1.PodFailure{Pod: "old", Reason: "StopFailed", Message: "runtime is gone"}
	d := rollout.Decision{Status: v1alpha1.RestartRolloutStatus{RolloutPods: v1alpha1.RolloutPods{Failures: []v1alpha1.PodFailure{old}}}}
	d.Refuse([]v1alpha1.PodFailure{{Pod: "web-0", Reason: rollout.ReasonRefused, Message: long}})
	failures := d.Status.Failures
	if len(failures) != 2 || failures[0].Pod != "web-0" || len(failures[0].Message) > result.MaxMessage || failures[1] != old {
		t.Errorf("%+v", failures)
	}
	many := make([]v1alpha1.PodFailure, rollout.MaxFailures)
	for i := range many {
		many[i].Pod = fmt.Sprintf("web-%d", i)
	}
	d.Refuse(many)
	if len(d.Status.Failures) != rollout.MaxFailures {
		t.Errorf("%d failures, want at most %d", len(d.Status.Failures), rollout.MaxFailures)
	}
}

func TestReplicasOfWorkloads(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kind         string
		spec, status any
		want         int32
	}{
		"of a StatefulSet":    {"StatefulSet", map[string]any{"replicas": int64(3)}, map[string]any{"desiredNumberScheduled": int64(4)}, 3},
		"of a DaemonSet":      {"DaemonSet", map[string]any{"replicas": int64(3)}, map[string]any{"desiredNumberScheduled": int64(4)}, 4},
		"not said":            {"CloneSet", map[string]any{}, nil, 0},
		"less than none":      {"CloneSet", map[string]any{"replicas": int64(-1)}, nil, 0},
		"no number":           {"CloneSet", map[string]any{"replicas": "3"}, nil, 0},
		"more than a counter": {"CloneSet", map[string]any{"replicas": int64(1) << 40}, nil, 1<<31 - 1},
	} {
		workload := &unstructured.Unstructured{Object: map[string]any{"kind": tt.kind, "spec": tt.spec, "status": tt.status}}
		if got := rollout.WorkloadReplicas(workload); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

package rollout_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/rollout"
)

func TestStrategyIsThatOfTheSidecarSet(t *testing.T) {
	t.Parallel()
	byLabel := func(key, value string) metav1.LabelSelector {
		return metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
	compiled := func(key, value string) labels.Selector { return labels.SelectorFromSet(labels.Set{key: value}) }
	selector := byLabel("canary", "yes")
	for name, tc := range map[string]struct {
		from   v1beta1.SidecarSetUpdateStrategy
		halted bool
		want   rollout.Strategy
	}{
		"nothing":    {},
		"halted":     {halted: true, want: rollout.Strategy{Halted: true}},
		"paused":     {from: v1beta1.SidecarSetUpdateStrategy{Paused: true}, want: rollout.Strategy{Paused: true}},
		"not at all": {from: v1beta1.SidecarSetUpdateStrategy{Type: v1beta1.SidecarSetNotUpdate}, want: rollout.Strategy{Paused: true}},
		"numbers": {
			from: v1beta1.SidecarSetUpdateStrategy{
				Partition: number(1), MaxUnavailable: percent("20%"), MaxUnavailablePerWorkload: number(3), MinReadySeconds: 4, PauseAfterFailedPods: new(int32(5)),
			},
			want: rollout.Strategy{Partition: number(1), MaxUnavailable: percent("20%"), WorkloadMaxUnavailable: number(3), MinReady: 4 * time.Second, MaxFailed: 5},
		},
		"evictions": {from: v1beta1.SidecarSetUpdateStrategy{RecreatePolicy: v1beta1.RecreateEvict}, want: rollout.Strategy{Recreate: true}},
		"selector":  {from: v1beta1.SidecarSetUpdateStrategy{Selector: &selector}, want: rollout.Strategy{Selector: compiled("canary", "yes")}},
		"scatter": {
			from: v1beta1.SidecarSetUpdateStrategy{ScatterStrategy: []v1beta1.UpdateScatterTerm{{Key: "app", Value: "*"}, {Key: "zone", Value: "a"}}},
			want: rollout.Strategy{Scatter: []rollout.Term{{Key: "app", Value: "*"}, {Key: "zone", Value: "a"}}},
		},
		"orders": {
			from: v1beta1.SidecarSetUpdateStrategy{PriorityStrategy: &v1beta1.UpdatePriorityStrategy{OrderPriority: []v1beta1.UpdatePriorityOrderTerm{{OrderedKey: "rank"}}}},
			want: rollout.Strategy{Orders: []string{"rank"}},
		},
		"weights": {
			from: v1beta1.SidecarSetUpdateStrategy{PriorityStrategy: &v1beta1.UpdatePriorityStrategy{
				WeightPriority: []v1beta1.UpdatePriorityWeightTerm{{Weight: 7, MatchSelector: byLabel("tier", "test")}},
			}},
			want: rollout.Strategy{Weights: []rollout.Weight{{Weight: 7, Selector: compiled("tier", "test")}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := rollout.NewStrategy(&tc.from, tc.halted)
			text := cmp.Comparer(func(a, b labels.Selector) bool {
				return a == nil && b == nil || a != nil && b != nil && a.String() == b.String()
			})
			if diff := cmp.Diff(tc.want, got, text); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestStrategyWithAWrongSelectorIsAnError(t *testing.T) {
	t.Parallel()
	wrong := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}}
	for name, from := range map[string]v1beta1.SidecarSetUpdateStrategy{
		"selector": {Selector: &wrong},
		"weight":   {PriorityStrategy: &v1beta1.UpdatePriorityStrategy{WeightPriority: []v1beta1.UpdatePriorityWeightTerm{{Weight: 1, MatchSelector: wrong}}}},
	} {
		if _, err := rollout.NewStrategy(&from, false); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Eviction is the only way to update some pods, and is asked for.
func TestPodsThatCannotBeUpdatedInPlaceAreChosenForEvictionOnRequest(t *testing.T) {
	t.Parallel()
	f := fleetOf(&rollout.Strategy{}, kind{1, []change{notUpgradable}}, kind{1, []change{notUpgradable, inFlight}})
	if got := f.Select(&rollout.Strategy{MaxUnavailable: number(9)}, now, nil); len(got.Pods) != 0 || got.Held != "" {
		t.Errorf("without a recreatePolicy: %+v", got)
	}
	got := f.Select(&rollout.Strategy{MaxUnavailable: number(9), Recreate: true}, now, nil)
	if len(got.Pods) != 1 || got.Pods[0] != keyOf(0) {
		t.Errorf("%+v, want the pod without an update under way", got)
	}
}

func TestRetriesAreWaitedFor(t *testing.T) {
	t.Parallel()
	retry := func(seconds int) change {
		return func(p *rollout.Pod) { p.RetryAt = now.Add(time.Duration(seconds) * time.Second) }
	}
	f := fleetOf(&rollout.Strategy{}, kind{1, []change{retry(5)}}, kind{1, []change{retry(3)}}, kind{1, []change{retry(9)}})
	got := f.Select(&rollout.Strategy{}, now, nil)
	if len(got.Pods) != 0 || got.Held != rollout.HoldRetry || !got.Again.Equal(now.Add(3*time.Second)) {
		t.Errorf("%+v, want a wait for the first retry", got)
	}
	if got := f.Select(&rollout.Strategy{Halted: true}, now, nil); !got.Again.Equal(now.Add(3 * time.Second)) {
		t.Errorf("in a pause by failures: %+v", got)
	}
}

func TestWhichPodsTheUserWantsUpdated(t *testing.T) {
	t.Parallel()
	web := labels.SelectorFromSet(labels.Set{"app": "web"})
	for name, tt := range map[string]struct {
		strategy rollout.Strategy
		want     [2]bool // web, db
	}{
		"all":                {rollout.Strategy{}, [2]bool{true, true}},
		"pods with a label":  {rollout.Strategy{Selector: web}, [2]bool{true, false}},
		"none, while paused": {rollout.Strategy{Paused: true}, [2]bool{}},
		"none, with a label": {rollout.Strategy{Paused: true, Selector: web}, [2]bool{}},
	} {
		for i, app := range []string{"web", "db"} {
			if got := tt.strategy.Selects(labels.Set{"app": app}); got != tt.want[i] {
				t.Errorf("%s: %s: %t", name, app, got)
			}
		}
	}
}

// Admission refuses them; a SidecarSet that was stored before does not update everything at once.
func TestNumbersThatAreNoneAreTheDefault(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		strategy rollout.Strategy
		want     int
		held     rollout.Hold
	}{
		"maxUnavailable":                       {rollout.Strategy{MaxUnavailable: percent("most")}, 1, rollout.HoldUnavailable},
		"a negative maxUnavailable":            {rollout.Strategy{MaxUnavailable: number(-1)}, 0, rollout.HoldUnavailable},
		"maxUnavailablePerWorkload":            {rollout.Strategy{MaxUnavailable: number(9), WorkloadMaxUnavailable: percent("most")}, 4, rollout.HoldWorkload},
		"maxUnavailablePerWorkload of 0":       {rollout.Strategy{MaxUnavailable: number(9), WorkloadMaxUnavailable: number(0)}, 1, rollout.HoldWorkload},
		"maxUnavailablePerWorkload of a third": {rollout.Strategy{MaxUnavailable: number(9), WorkloadMaxUnavailable: percent("39%")}, 1, rollout.HoldWorkload},
		"partition":                            {rollout.Strategy{MaxUnavailable: number(9), WorkloadMaxUnavailable: number(9), Partition: percent("most")}, 5, ""},
		"a negative partition":                 {rollout.Strategy{MaxUnavailable: number(9), WorkloadMaxUnavailable: number(9), Partition: number(-1)}, 5, ""},
	} {
		got := fleetOf(&tt.strategy, kind{5, []change{of("a")}}).Select(&tt.strategy, now, nil)
		if len(got.Pods) != tt.want || got.Held != tt.held {
			t.Errorf("%s: %d pods, held by %q; want %d, %q", name, len(got.Pods), got.Held, tt.want, tt.held)
		}
	}
}

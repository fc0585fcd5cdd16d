package rollout_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/refit-project/refit/sidecarset/rollout"
)

// Pods are shown by their value of the label, "." for none, in the order in which they are updated.
func TestScatterOfSeveralValues(t *testing.T) {
	t.Parallel()
	db, web := labelled("app", "d"), labelled("app", "w")
	for name, tc := range map[string]struct {
		term  rollout.Term
		kinds []kind
		want  string
	}{
		"one value, the others stay in their order": {
			rollout.Term{Key: "app", Value: "d"}, []kind{{3, []change{db}}, {3, []change{web}}, {6, nil}}, "dwww.d.....d",
		},
		"every value, the most frequent one first": {
			rollout.Term{Key: "app", Value: "*"}, []kind{{2, []change{db}}, {5, []change{web}}, {4, nil}}, "dww.w.w..wd",
		},
		"values that are as frequent, by their names": {
			rollout.Term{Key: "app", Value: "*"}, []kind{{3, []change{web}}, {3, []change{db}}, {3, nil}}, "wdd.w..dw",
		},
		"most of those with the label have been updated": {
			rollout.Term{Key: "app", Value: "d"}, []kind{{2, []change{db}}, {8, []change{db, updated}}, {10, nil}}, "........d..d",
		},
		"most of those without it have been": {
			rollout.Term{Key: "app", Value: "d"}, []kind{{4, []change{db}}, {4, nil}, {12, []change{updated}}}, "d.d.d..d",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &rollout.Strategy{MaxUnavailable: number(99), Scatter: []rollout.Term{tc.term}}
			f := fleetOf(s, tc.kinds...)
			var order strings.Builder
			for _, key := range f.Select(s, now, nil).Pods {
				p, _ := f.Get(key)
				value := p.Labels["app"]
				if value == "" {
					value = "."
				}
				order.WriteString(value)
			}
			if order.String() != tc.want {
				t.Errorf("updated in the order %q, want %q", order.String(), tc.want)
			}
		})
	}
}

// Each value is counted once, however many terms name its key: the spacing would be another.
func TestScatterByTwoTermsOfOneKey(t *testing.T) {
	t.Parallel()
	db, web := labelled("app", "d"), labelled("app", "w")
	orders := map[string]bool{}
	for _, terms := range [][]rollout.Term{{{Key: "app", Value: "d"}}, {{Key: "app", Value: "d"}, {Key: "app", Value: "none"}}} {
		s := &rollout.Strategy{MaxUnavailable: number(99), Scatter: terms}
		orders[fmt.Sprint(fleetOf(s, kind{2, []change{db}}, kind{8, []change{db, updated}}, kind{10, []change{web}}).Select(s, now, nil).Pods)] = true
	}
	if len(orders) != 1 {
		t.Errorf("a term that no pod has changes the order: %v", orders)
	}
}

// Which of two pods that are alike is updated first does not change from one look to the next.
func TestPodsThatAreAlikeComeInTheSameOrderEveryTime(t *testing.T) {
	t.Parallel()
	s := &rollout.Strategy{MaxUnavailable: number(99)}
	orders := map[string]bool{}
	for range 20 {
		orders[fmt.Sprint(fleetOf(s, kind{6, []change{created(now)}}).Select(s, now, nil).Pods)] = true
	}
	if len(orders) != 1 {
		t.Errorf("%d orders: %v", len(orders), orders)
	}
}

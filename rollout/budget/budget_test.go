package budget_test

import (
	"slices"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/rollout/budget"
)

var (
	serving        = budget.Pod{Ready: true, Available: true}
	young          = budget.Pod{Ready: true}
	blip           = budget.Pod{}
	stuck          = budget.Pod{Stuck: true}
	draining       = budget.Pod{Ready: true, UnderWay: true} // still ready
	down           = budget.Pod{UnderWay: true}
	restartedStuck = budget.Pod{UnderWay: true, Stuck: true}
)

// taken are the indices of the pods that may be taken out, in order.
func taken(limit int, pods []budget.Pod, missing, evicted int, disruptions *budget.Disruptions) []int {
	b := budget.New(limit, pods, missing, evicted, disruptions)
	var taken []int
	for i := range pods {
		if hold, _ := b.Take(&pods[i]); hold == "" && !pods[i].UnderWay {
			taken = append(taken, i)
		}
	}
	return taken
}

// All of these were outages of whole workloads, but the last ones.
func TestNoMorePodsAreTakenOutThanMayBeUnavailable(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		limit            int
		pods             []budget.Pod
		missing, evicted int
		want             []int
	}{
		"young pods serve":           {limit: 1, pods: []budget.Pod{young, young, young, young}},
		"one young pod may go first": {limit: 1, pods: []budget.Pod{young, serving, serving}, want: []int{0}},
		"pods that are not ready for a moment go one after another": {limit: 1, pods: []budget.Pod{blip, blip, blip}, want: []int{0}},
		"as many of them as may be unavailable":                     {limit: 2, pods: []budget.Pod{blip, blip, blip}, want: []int{0, 1}},
		"none while something else is under way":                    {limit: 1, pods: []budget.Pod{draining, blip, serving}},
		"a pod that is still ready and under way is unavailable":    {limit: 1, pods: []budget.Pod{draining, serving, serving}},
		"a blip makes a ready pod wait":                             {limit: 1, pods: []budget.Pod{serving, blip, serving}, want: []int{1}},
		"a pod that is missing counts":                              {limit: 1, pods: []budget.Pod{serving, serving}, missing: 1},
		"a pod that is missing is not under way":                    {limit: 1, pods: []budget.Pod{blip, serving}, missing: 1, want: []int{0}},
		"a pod that was evicted and is gone is under way":           {limit: 1, pods: []budget.Pod{blip, serving}, evicted: 1},
		"pods that cannot come back go all at once":                 {limit: 1, pods: []budget.Pod{stuck, stuck, stuck, serving}, want: []int{0, 1, 2}},
		"also while another is under way":                           {limit: 1, pods: []budget.Pod{down, stuck}, want: []int{1}},
		"a blip and what is taken are two":                          {limit: 2, pods: []budget.Pod{serving, serving, blip}, want: []int{0, 2}},
		"half":                                                      {limit: 2, pods: []budget.Pod{serving, serving, serving, serving}, want: []int{0, 1}},
		"more than may be is under way by others":                   {limit: 1, pods: []budget.Pod{down, down, blip}},
		"a surplus pod that is stuck is not needed":                 {limit: 1, pods: []budget.Pod{stuck, serving, serving}, missing: -1, want: []int{0}},
		"nor is one that has not become ready":                      {limit: 1, pods: []budget.Pod{serving, serving, blip}, missing: -1, want: []int{0}},
		"nor one that was restarted and is stuck again":             {limit: 1, pods: []budget.Pod{restartedStuck, serving, serving}, missing: -1, want: []int{1}},
		"of two that are not ready one may be needed":               {limit: 1, pods: []budget.Pod{restartedStuck, blip, serving, serving}, missing: -1},
		"a surplus pod that serves does not free another":           {limit: 1, pods: []budget.Pod{draining, serving, serving}, missing: -1},
		"what is under way is needed":                               {limit: 1, pods: []budget.Pod{down, serving, serving}, missing: -1},
		"nothing":                                                   {limit: 0, pods: []budget.Pod{serving, blip}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := taken(tt.limit, tt.pods, tt.missing, tt.evicted, nil); !slices.Equal(got, tt.want) {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

// Evictions of pods that are not ready follow the same rules (KEP-3017).
func TestDisruptionBudgetsAreAskedForPodsThatAreNotReadyToo(t *testing.T) {
	t.Parallel()
	always, ifHealthy := policyv1.AlwaysAllow, policyv1.IfHealthyBudget
	for name, tt := range map[string]struct {
		pods             []budget.Pod
		healthy, desired int32
		policy           *policyv1.UnhealthyPodEvictionPolicyType
		want             []int
	}{
		"as many as it allows":                         {pods: []budget.Pod{serving, serving, serving}, healthy: 3, desired: 2, want: []int{0}},
		"none":                                         {pods: []budget.Pod{serving, serving, serving}, healthy: 3, desired: 3},
		"none, and a pod flickers":                     {pods: []budget.Pod{serving, blip, serving}, healthy: 2, desired: 3},
		"enough others are healthy":                    {pods: []budget.Pod{serving, blip, serving}, healthy: 2, desired: 2, want: []int{1}},
		"not enough others are healthy":                {pods: []budget.Pod{blip, blip, serving}, healthy: 1, desired: 2},
		"unhealthy pods may always go":                 {pods: []budget.Pod{blip, blip, serving}, healthy: 1, desired: 2, policy: &always, want: []int{0, 1}},
		"unhealthy pods follow the budget":             {pods: []budget.Pod{blip, blip, serving}, healthy: 1, desired: 2, policy: &ifHealthy},
		"its controller has not counted yet":           {pods: []budget.Pod{blip}},
		"a new pod that its controller has not seen":   {pods: []budget.Pod{serving, serving, serving, blip}, healthy: 3, desired: 2, want: []int{0, 3}},
		"a pod that cannot come back is not asked for": {pods: []budget.Pod{stuck, serving, serving}, healthy: 2, desired: 3, want: []int{0}},
		"the status does not show what is under way":   {pods: []budget.Pod{draining, serving, serving}, healthy: 3, desired: 2},
		"the status does not show a blip yet":          {pods: []budget.Pod{serving, blip, serving}, healthy: 3, desired: 2, want: []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := &policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Name: "one"},
				Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}, UnhealthyPodEvictionPolicy: tt.policy},
				Status: policyv1.PodDisruptionBudgetStatus{
					CurrentHealthy: tt.healthy, DesiredHealthy: tt.desired, DisruptionsAllowed: max(0, tt.healthy-tt.desired), ExpectedPods: 3,
				},
			}
			disruptions := budget.NewDisruptions([]*policyv1.PodDisruptionBudget{object}, tt.pods)
			if got := taken(3, tt.pods, 0, 0, disruptions); !slices.Equal(got, tt.want) {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

func TestTheDisruptionBudgetThatHoldsAPodIsNamed(t *testing.T) {
	t.Parallel()
	pods := []budget.Pod{serving}
	object := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "one", Generation: 2}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}}}
	object.Status.DisruptionsAllowed, object.Status.ObservedGeneration = 1, 1 // its controller has not seen the last change
	b := budget.New(1, pods, 0, 0, budget.NewDisruptions([]*policyv1.PodDisruptionBudget{object}, pods))
	if hold, by := b.Take(&pods[0]); hold != budget.HoldDisruption || by != "one" {
		t.Errorf("%q by %q", hold, by)
	}
}

// By its last status one that is not ready might go; the change may be that it must not.
func TestADisruptionBudgetThatHasJustBeenChangedProtectsPodsThatAreNotReadyToo(t *testing.T) {
	t.Parallel()
	for _, policy := range []policyv1.UnhealthyPodEvictionPolicyType{policyv1.IfHealthyBudget, policyv1.AlwaysAllow} {
		pods := []budget.Pod{serving, blip, serving}
		object := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: "one", Generation: 2},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}, UnhealthyPodEvictionPolicy: &policy},
			Status: policyv1.PodDisruptionBudgetStatus{
				ObservedGeneration: 1, CurrentHealthy: 2, DesiredHealthy: 1, DisruptionsAllowed: 1, ExpectedPods: 3,
			},
		}
		if got := taken(3, pods, 0, 0, budget.NewDisruptions([]*policyv1.PodDisruptionBudget{object}, pods)); got != nil {
			t.Errorf("%s: %v", policy, got)
		}
	}
}

func TestADisruptionBudgetCountsOnlyThePodsThatItSelects(t *testing.T) {
	t.Parallel()
	object := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: policyv1.PodDisruptionBudgetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
	}, Status: policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 2, DesiredHealthy: 1, DisruptionsAllowed: 1, ExpectedPods: 2}}
	web, other := map[string]string{"app": "web"}, map[string]string{"app": "db"}
	pods := []budget.Pod{
		{Labels: other, UnderWay: true, Ready: true}, {Labels: other}, {Labels: other, Ready: true, Available: true},
		{Labels: web, Ready: true, Available: true}, {Labels: web, Ready: true, Available: true}, {Labels: other, Ready: true, Available: true},
	}
	got := taken(10, pods, 0, 0, budget.NewDisruptions([]*policyv1.PodDisruptionBudget{object}, pods))
	if want := []int{1, 2, 3, 5}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestADisruptionBudgetIsNotAskedAgainForAPodThatIsUnderWay(t *testing.T) {
	t.Parallel()
	pods := []budget.Pod{draining, serving}
	object := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}}}
	b := budget.New(1, pods, 0, 0, budget.NewDisruptions([]*policyv1.PodDisruptionBudget{object}, pods))
	if hold, by := b.Take(&pods[0]); hold != "" {
		t.Errorf("%q by %q", hold, by)
	}
}

func TestADisruptionBudgetThatCannotBeReadProtectsEveryPod(t *testing.T) {
	t.Parallel()
	pods := []budget.Pod{serving}
	selector := &metav1.LabelSelector{MatchExpressions: slices.Repeat([]metav1.LabelSelectorRequirement{{Key: "gone", Operator: metav1.LabelSelectorOpExists}}, 10_000)}
	object := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "huge"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector}}
	object.Status.DisruptionsAllowed = 1
	b := budget.New(1, pods, 0, 0, budget.NewDisruptions([]*policyv1.PodDisruptionBudget{object}, pods))
	if hold, by := b.Take(&pods[0]); hold != budget.HoldDisruption || by != "huge" {
		t.Errorf("%q by %q", hold, by)
	}
}

// A SidecarSet may update a pod that is being restarted anyway, but not every pod when somebody restarts all of them at once.
func TestWhatIsUnderWayAnywayMayBeJoinedWithinTheLimit(t *testing.T) {
	t.Parallel()
	one := []budget.Pod{draining, serving}
	if b := budget.New(1, one, 0, 0, nil); !b.Allows(&one[0]) || b.Allows(&one[1]) {
		t.Error("one of two pods is under way")
	}
	two := []budget.Pod{draining, down, {UnderWay: true, Stuck: true}}
	b := budget.New(1, two, 0, 0, nil)
	if b.Allows(&two[0]) || b.Allows(&two[1]) || !b.Allows(&two[2]) {
		t.Error("three are under way, one of which cannot become ready by itself")
	}
	if hold, _ := b.Take(&two[0]); hold != budget.HoldUnavailable {
		t.Errorf("hold %q", hold)
	}
}

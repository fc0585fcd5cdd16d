package rollout

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/rollout/budget"
)

// Strategy says how fast and in which order pods are updated. The zero value updates one pod at a time.
type Strategy struct {
	// Paused says to update nothing.
	Paused bool
	// Selector restricts the update to some pods; nil means all.
	Selector labels.Selector
	// Partition is how many of the updatable pods keep the old sidecars; nil means 0. Percentages are of all matched
	// pods, rounded up.
	Partition *intstr.IntOrString
	// MaxUnavailable is how many updated pods may be unavailable; nil means 1. Percentages are of all matched pods,
	// rounded up.
	MaxUnavailable *intstr.IntOrString
	// WorkloadMaxUnavailable is how many pods of one workload may be unavailable when one more is updated. Percentages
	// are of the workload's matched pods, rounded down, but at least 1. Nil means all but one; a workload with one pod
	// is updated too.
	WorkloadMaxUnavailable *intstr.IntOrString
	// MinReady is how long an updated pod must be ready until it counts as available.
	MinReady time.Duration
	// MaxFailed is how many pods may fail with the newest spec before the rollout pauses itself; 0 means no limit.
	MaxFailed int
	// Halted says that the rollout has paused itself. It continues only with another spec.
	Halted bool
	// Recreate says to also select pods that cannot be updated in place, to evict them.
	Recreate bool

	// Weights or Orders order the pods; Scatter then distributes pods with the same label.
	Weights []Weight
	Orders  []string // label keys
	Scatter []Term
}

// Weight is added for pods that the selector matches; pods with the highest sum come first.
type Weight struct {
	Weight   int32
	Selector labels.Selector
}

// Term is a label by which pods are distributed. The value "*" means each value that occurs.
type Term struct{ Key, Value string }

// NewStrategy compiles the strategy of a SidecarSet. It returns errors about selectors, which admission refuses.
func NewStrategy(from *v1beta1.SidecarSetUpdateStrategy, halted bool) (Strategy, error) {
	s := Strategy{
		Paused: from.Paused || from.Type == v1beta1.SidecarSetNotUpdate, Partition: from.Partition, MaxUnavailable: from.MaxUnavailable,
		WorkloadMaxUnavailable: from.MaxUnavailablePerWorkload, MinReady: time.Duration(from.MinReadySeconds) * time.Second,
		Halted: halted, Recreate: from.RecreatePolicy == v1beta1.RecreateEvict,
	}
	if from.PauseAfterFailedPods != nil {
		s.MaxFailed = int(*from.PauseAfterFailedPods)
	}
	var err error
	if from.Selector != nil {
		if s.Selector, err = foreign.Selector(from.Selector); err != nil {
			return s, err
		}
	}
	for _, term := range from.ScatterStrategy {
		s.Scatter = append(s.Scatter, Term{Key: term.Key, Value: term.Value})
	}
	if from.PriorityStrategy == nil {
		return s, nil
	}
	for _, term := range from.PriorityStrategy.OrderPriority {
		s.Orders = append(s.Orders, term.OrderedKey)
	}
	for i := range from.PriorityStrategy.WeightPriority {
		term := &from.PriorityStrategy.WeightPriority[i]
		matches, err := foreign.Selector(&term.MatchSelector)
		if err != nil {
			return s, err
		}
		s.Weights = append(s.Weights, Weight{Weight: term.Weight, Selector: matches})
	}
	return s, nil
}

// Selects reports whether the user wants a pod with these labels to be updated, now or later.
func (s *Strategy) Selects(pod labels.Set) bool {
	return !s.Paused && (s.Selector == nil || s.Selector.Matches(pod))
}

// kept returns how many pods the partition keeps old. A percentage below 100% allows the update of at least one of
// several pods.
func (s *Strategy) kept(total int) int {
	kept := min(budget.Scaled(s.Partition, total, true, 0), total)
	if s.Partition != nil && s.Partition.Type == intstr.String && s.Partition.StrVal != "100%" && kept == total && total > 1 {
		return total - 1
	}
	return kept
}

func (s *Strategy) maxUnavailable(total int) int {
	return budget.Scaled(s.MaxUnavailable, total, true, 1)
}

func (s *Strategy) workloadMaxUnavailable(total int) int {
	return max(budget.Scaled(s.WorkloadMaxUnavailable, total, false, total-1), 1)
}

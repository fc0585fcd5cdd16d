package rollout

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1beta1"
)

// Strategy says how fast and in which order pods are updated. The zero value updates one pod at a time.
type Strategy struct {
	// Paused: nothing is updated.
	Paused bool
	// Selector restricts the update to some pods; nil for all.
	Selector labels.Selector
	// Partition is how many pods keep the old sidecars, of all matched ones; nil for 0. Percentages are rounded up.
	Partition *intstr.IntOrString
	// MaxUnavailable is how many updated pods may be unavailable, of all matched ones; nil for 1. Percentages are rounded up.
	MaxUnavailable *intstr.IntOrString
	// WorkloadMaxUnavailable is how many pods of one workload may be unavailable when one more is updated. Percentages are of
	// the workload's matched pods, rounded down, but at least 1. Nil: all but one; a workload of one pod is updated too.
	WorkloadMaxUnavailable *intstr.IntOrString
	// MinReady is how long an updated pod has to be ready before it counts as available.
	MinReady time.Duration
	// MaxFailed is how many pods may fail with the newest spec before the rollout pauses by itself; 0 for any number.
	MaxFailed int
	// Halted: it has paused by itself, and goes on only with another spec.
	Halted bool
	// Recreate: pods that cannot be updated in place are chosen as well, to be evicted.
	Recreate bool

	// Weights or Orders put pods in order; Scatter then distributes those with the same label.
	Weights []Weight
	Orders  []string // label keys
	Scatter []Term
}

// Weight is added for the pods that the selector matches; pods with the highest sum are first.
type Weight struct {
	Weight   int32
	Selector labels.Selector
}

// Term is a label by which pods are distributed. The value "*" stands for each value that occurs.
type Term struct{ Key, Value string }

// NewStrategy compiles the strategy of a SidecarSet. Errors are about selectors, which admission refuses.
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
		if s.Selector, err = metav1.LabelSelectorAsSelector(from.Selector); err != nil {
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
		matches, err := metav1.LabelSelectorAsSelector(&term.MatchSelector)
		if err != nil {
			return s, err
		}
		s.Weights = append(s.Weights, Weight{Weight: term.Weight, Selector: matches})
	}
	return s, nil
}

// scaled is an absolute number, or a percentage of the total.
func scaled(value *intstr.IntOrString, total int, roundUp bool, otherwise int) int {
	if value == nil {
		return otherwise
	}
	number, err := intstr.GetScaledValueFromIntOrPercent(value, total, roundUp)
	if err != nil {
		return otherwise // refused by admission
	}
	return max(number, 0)
}

// kept is how many pods the partition keeps old: a percentage below 100% lets at least one of several be updated.
func (s *Strategy) kept(total int) int {
	kept := min(scaled(s.Partition, total, true, 0), total)
	if s.Partition != nil && s.Partition.Type == intstr.String && s.Partition.StrVal != "100%" && kept == total && total > 1 {
		return total - 1
	}
	return kept
}

func (s *Strategy) maxUnavailable(total int) int { return scaled(s.MaxUnavailable, total, true, 1) }

func (s *Strategy) workloadMaxUnavailable(total int) int {
	return max(scaled(s.WorkloadMaxUnavailable, total, false, total-1), 1)
}

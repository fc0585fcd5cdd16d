package rollout

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// order sorts pods: those whose update harms least are first, then by priority, then scattered. All is all matched pods,
// of which some are candidates.
func (s *Strategy) order(candidates []*Pod, counts labelCounts) []*Pod {
	slices.SortFunc(candidates, leastHarm)
	switch {
	case len(s.Weights) > 0:
		weights := make(map[*Pod]int64, len(candidates))
		for _, pod := range candidates {
			for _, w := range s.Weights {
				if w.Selector.Matches(labels.Set(pod.Labels)) {
					weights[pod] += int64(w.Weight)
				}
			}
		}
		slices.SortStableFunc(candidates, func(a, b *Pod) int { return cmp.Compare(weights[b], weights[a]) })
	case len(s.Orders) > 0:
		slices.SortStableFunc(candidates, s.byOrderedKey)
	}
	return s.scatter(candidates, counts)
}

// leastHarm puts pods that do not serve before those that do, as Kubernetes does when it removes pods: not scheduled, not
// running, not ready, ready for a short time, often restarted, young. Pods that are alike come in the order of a hash, so
// that the same ones are first every time.
func leastHarm(a, b *Pod) int {
	return cmp.Or(
		compareBool(a.Scheduled, b.Scheduled),
		compareBool(a.Running, b.Running),
		compareBool(a.Ready, b.Ready),
		b.ReadySince.Compare(a.ReadySince),
		cmp.Compare(b.Restarts, a.Restarts),
		b.Created.Compare(a.Created),
		cmp.Compare(stableHash(a.Key.String()), stableHash(b.Key.String())),
		strings.Compare(a.Key.String(), b.Key.String()),
	)
}

// compareBool puts false first.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

func stableHash(text string) uint64 {
	hash := fnv.New64a()
	hash.Write([]byte(text))
	return hash.Sum64()
}

// byOrderedKey compares by the first key that a pod has, and then by the number at the end of its value, highest first. Pods
// with none of the keys are last.
func (s *Strategy) byOrderedKey(a, b *Pod) int {
	keyOf := func(pod *Pod) (int, string) {
		for i, key := range s.Orders {
			if value, ok := pod.Labels[key]; ok {
				return i, value
			}
		}
		return len(s.Orders), ""
	}
	left, leftValue := keyOf(a)
	right, rightValue := keyOf(b)
	return cmp.Or(cmp.Compare(left, right), cmp.Compare(trailingNumber(rightValue), trailingNumber(leftValue)))
}

// trailingNumber is the number at the end of a text, 0 without one. One that is too large counts as the largest.
func trailingNumber(text string) uint64 {
	digits := text[len(strings.TrimRight(text, "0123456789")):]
	number, _ := strconv.ParseUint(digits, 10, 64) // the largest number on overflow, 0 for none
	return number
}

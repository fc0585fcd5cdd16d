package rollout

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// order sorts pods: first the pods whose update does the least harm, then by priority, then scattered. counts covers
// all matched pods, not only the candidates.
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

// leastHarm orders pods that do not serve before those that do, like Kubernetes when it removes pods: not scheduled,
// pending, unknown, running, not ready, ready for a short time, often restarted, young. Equal pods are ordered by a
// hash, so that the order is the same every time.
func leastHarm(a, b *Pod) int {
	return cmp.Or(
		compareBool(a.Scheduled, b.Scheduled),
		cmp.Compare(phaseRank(a.Phase), phaseRank(b.Phase)),
		compareBool(a.Ready, b.Ready),
		b.ReadySince.Compare(a.ReadySince),
		cmp.Compare(b.Restarts, a.Restarts),
		b.Created.Compare(a.Created),
		cmp.Compare(stableHash(a.Key.String()), stableHash(b.Key.String())),
		strings.Compare(a.Key.String(), b.Key.String()),
	)
}

// phaseRank returns the position of a pod by its phase. A pod is Unknown if its node does not report; it may still serve.
func phaseRank(phase corev1.PodPhase) int {
	switch phase {
	case corev1.PodRunning:
		return 2
	case corev1.PodUnknown:
		return 1
	default:
		return 0
	}
}

// compareBool orders false before true.
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

// byOrderedKey compares by the first key that a pod has, and then by the number at the end of its value, highest first.
// Pods without any of the keys come first, like in OpenKruise.
func (s *Strategy) byOrderedKey(a, b *Pod) int {
	keyOf := func(pod *Pod) (int, string) {
		for i, key := range s.Orders {
			if value, ok := pod.Labels[key]; ok {
				return i, value
			}
		}
		return -1, ""
	}
	left, leftValue := keyOf(a)
	right, rightValue := keyOf(b)
	return cmp.Or(cmp.Compare(left, right), cmp.Compare(trailingNumber(rightValue), trailingNumber(leftValue)))
}

// trailingNumber returns the number at the end of a text, or 0. A number that is too large counts as the largest one.
func trailingNumber(text string) uint64 {
	digits := text[len(strings.TrimRight(text, "0123456789")):]
	number, _ := strconv.ParseUint(digits, 10, 64) // returns the largest number on overflow, and 0 for ""
	return number
}

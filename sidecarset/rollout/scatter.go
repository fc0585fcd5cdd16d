package rollout

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// labelCounts says how many of all matched pods have a value of a label.
type labelCounts struct {
	total  int
	values map[string]map[string]int // by key and value
}

// scatter distributes candidates that match a term among the others, term by term. They are spread like the matching
// pods among all matched pods, so that a resumed rollout continues as it began. One of them is kept for the very end.
func (s *Strategy) scatter(candidates []*Pod, counts labelCounts) []*Pod {
	if len(candidates) == 0 {
		return candidates
	}
	for _, term := range s.terms(candidates) {
		candidates = scatterBy(candidates, term, counts)
	}
	return candidates
}

// terms returns the terms of the strategy with "*" replaced by the values that candidates have, the most frequent first.
func (s *Strategy) terms(candidates []*Pod) []Term {
	var terms []Term
	for _, term := range s.Scatter {
		if term.Value != "*" {
			terms = append(terms, term)
			continue
		}
		seen := map[string]bool{}
		for _, pod := range candidates {
			if value, ok := pod.Labels[term.Key]; ok {
				seen[value] = true
			}
		}
		for _, value := range slices.Sorted(maps.Keys(seen)) {
			terms = append(terms, Term{Key: term.Key, Value: value})
		}
	}
	if len(terms) > 1 {
		count := map[Term]int{}
		for _, pod := range candidates {
			for _, term := range terms {
				if matches(pod, term) {
					count[term]++
				}
			}
		}
		slices.SortStableFunc(terms, func(a, b Term) int { return cmp.Compare(count[b], count[a]) })
	}
	return terms
}

func matches(pod *Pod, term Term) bool {
	value, ok := pod.Labels[term.Key]
	return ok && value == term.Value
}

func scatterBy(candidates []*Pod, term Term, counts labelCounts) []*Pod {
	var with, without []*Pod
	for _, pod := range candidates {
		if matches(pod, term) {
			with = append(with, pod)
		} else {
			without = append(without, pod)
		}
	}
	if len(with) <= 1 || len(without) <= 1 {
		return candidates
	}
	last := with[len(with)-1]
	with = with[:len(with)-1]
	allWith := counts.values[term.Key][term.Value]
	allWithout := counts.total - allWith
	var ahead []*Pod // pods that are not distributed, because too many are left over from earlier updates
	if float64(allWithout)/float64(allWith) < float64(len(without))/float64(len(with)+1) {
		// The label is rarer among the candidates than among all pods: keep the spacing of all pods.
		spacing := float64(allWithout) / float64(max(allWith-1, 1))
		if surplus := len(without) - int(math.Ceil(spacing*float64(len(with)))); surplus > 0 {
			ahead, without = without[:surplus], without[surplus:]
		}
	}
	scattered := slices.Clone(ahead)
	scattered = append(scattered, interleave(with, without)...)
	return append(scattered, last)
}

// interleave merges two lists evenly, beginning with the first list.
func interleave(first, second []*Pod) []*Pod {
	groups := min(len(first), len(second))
	merged := make([]*Pod, 0, len(first)+len(second))
	for i := range groups {
		merged = append(merged, part(first, i, groups)...)
		merged = append(merged, part(second, i, groups)...)
	}
	return merged
}

// part returns the i-th of n parts of a list. The lengths of the parts differ by at most one.
func part(pods []*Pod, i, n int) []*Pod {
	return pods[i*len(pods)/n : (i+1)*len(pods)/n]
}

package rollout

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/internal/recheck"
	"github.com/refit-project/refit/rollout/budget"
)

// holdLimit limits how long pods of one namespace that this process has not updated block the pods of other namespaces.
// Without a limit, a user who may annotate pods of a namespace and make them not ready could stop the rollout
// everywhere. It is equal to the time that budgets wait for a pod that is not ready.
const holdLimit = budget.StuckAfter

// holding maps pods that count against maxUnavailable to since when they have counted without interruption, as observed
// by this process: annotations are not trusted because users who may annotate the pod can write them.
type holding map[types.UID]time.Time

// note updates it with the pods that count now.
func (h *holding) note(pods []*Pod, now time.Time) {
	next := make(holding, len(pods))
	for _, pod := range pods {
		since, known := (*h)[pod.UID]
		if !known {
			since = now
		}
		next[pod.UID] = since
	}
	*h = next
}

// exempt returns the namespace with the most pods that have counted for longer than holdLimit, of several the first by
// name, or "" if there is none. This namespace does not block other namespaces. Only one namespace is exempt at a time,
// so that a faulty sidecar makes at most twice as many pods not ready as maxUnavailable allows, even if the leader
// changes meanwhile.
func (h holding) exempt(pods []*Pod, now time.Time) (namespace string) {
	by := map[string]int{}
	for _, pod := range pods {
		if h.over(pod, now) {
			by[pod.Key.Namespace]++
		}
	}
	for name, n := range by {
		if namespace == "" || n > by[namespace] || n == by[namespace] && name < namespace {
			namespace = name
		}
	}
	return namespace
}

// over reports whether a pod has counted for longer than holdLimit. There is no limit for a pod that this process has
// updated, because the sidecar may be faulty.
func (h holding) over(pod *Pod, now time.Time) bool {
	return !pod.Ours && !now.Before(h[pod.UID].Add(holdLimit))
}

// next returns a function that returns, for a pod of a namespace, when the first pod of another namespace will have
// counted for longer than holdLimit.
func (h holding) next(pods []*Pod, now time.Time) func(namespace string) time.Time {
	by := map[string]time.Time{}
	for _, pod := range pods {
		if !pod.Ours && !h.over(pod, now) {
			by[pod.Key.Namespace] = recheck.On(by[pod.Key.Namespace]).Or(h[pod.UID].Add(holdLimit)).Time
		}
	}
	first := func(except string) (namespace string, at time.Time) {
		for name, t := range by {
			if name != except && (at.IsZero() || t.Before(at)) {
				namespace, at = name, t
			}
		}
		return namespace, at
	}
	soonest, at := first("")
	_, other := first(soonest)
	return func(namespace string) time.Time {
		if namespace == soonest {
			return other
		}
		return at
	}
}

// without removes the pods of a namespace that have counted for longer than holdLimit, and returns the others.
func (h holding) without(pods []*Pod, namespace string, now time.Time) []*Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod *Pod) bool { return pod.Key.Namespace == namespace && h.over(pod, now) })
}

package status

import (
	"cmp"
	"iter"

	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/sidecarset/missed"
)

// longestExample limits an example in the status, in bytes.
const longestExample = 500

// Example returns the problem of one pod: of the pods that have failed, or else of those that cannot be updated, or else of those that were
// not injected, as the condition Degraded has them. It returns the same one as long as nothing changes, and "" if there is none.
func Example(failed, notUpgradable iter.Seq2[types.NamespacedName, string], notInjected missed.Pods) string {
	key, text := first(failed)
	if key.Name == "" {
		key, text = first(notUpgradable)
	}
	if key.Name == "" {
		var pod missed.Pod
		if key, pod = first(notInjected); key.Name == "" {
			return ""
		}
		text = pod.Message
	}
	return key.String() + ": " + foreign.Cut(text, longestExample)
}

// first returns the pod with the smallest key; its name is empty if there is none.
func first[V any](pods iter.Seq2[types.NamespacedName, V]) (key types.NamespacedName, value V) {
	for k, v := range pods {
		if key.Name == "" || cmp.Compare(k.String(), key.String()) < 0 {
			key, value = k, v
		}
	}
	return key, value
}

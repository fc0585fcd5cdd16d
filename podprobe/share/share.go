// Package share decides which pods of a node are probed when their probes exceed what one NodePodProbe can hold.
package share

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1alpha1"
)

const (
	// maxNode bounds the probes of a node in bytes.
	maxNode = 768 << 10
	// maxResults bounds the probes of a node together with their results, in bytes without messages: etcd takes 1.5 MiB for an object
	// (--max-request-bytes), and what is left is for messages.
	maxResults = 1280 << 10
	// maxPods is the limit of the schema of NodePodProbe.
	maxPods = 1024
)

// space is what pods take of a NodePodProbe.
type space struct {
	bytes, withResults, pods, probes int
}

func spaceOf(p v1alpha1.PodProbe) space {
	content, err := json.Marshal(p)
	results, resultsErr := json.Marshal(resultsOf(p))
	if err != nil || resultsErr != nil { // all of their types can be encoded
		return space{bytes: maxNode + 1, pods: 1, probes: len(p.Probes)}
	}
	return space{bytes: len(content), withResults: len(content) + len(results), pods: 1, probes: len(p.Probes)}
}

// resultsOf is as large as what a daemon reports of the probes, without messages.
func resultsOf(p v1alpha1.PodProbe) v1alpha1.PodProbeStatus {
	at := metav1.NewTime(time.Unix(0, 0))
	results := v1alpha1.PodProbeStatus{Name: p.Name, Namespace: p.Namespace, UID: p.UID}
	for _, probe := range p.Probes {
		results.ProbeStates = append(results.ProbeStates, v1alpha1.ContainerProbeState{
			Name: probe.Name, State: v1alpha1.ProbeSucceeded, LastProbeTime: at, LastTransitionTime: at,
		})
	}
	return results
}

func (s space) plus(o space) space {
	return space{bytes: s.bytes + o.bytes, withResults: s.withResults + o.withResults, pods: s.pods + o.pods, probes: s.probes + o.probes}
}

func (s space) fits() bool {
	return s.bytes <= maxNode && s.withResults <= maxResults && s.pods <= maxPods && s.probes <= v1alpha1.MaxProbesOfNode
}

// share is the largest part that s has of any limit.
func (s space) share() float64 {
	return max(float64(s.bytes)/maxNode, float64(s.withResults)/maxResults, float64(s.pods)/maxPods, float64(s.probes)/v1alpha1.MaxProbesOfNode)
}

// sized is the probes of a pod with the space that they take.
type sized struct {
	v1alpha1.PodProbe
	space
}

// Fit chooses the pods that are probed: all, if there is space for them. Otherwise the namespace that has the least gets
// the space for its next pod, if there is so much left.
func Fit(all []v1alpha1.PodProbe) (fitting, omitted []v1alpha1.PodProbe) {
	total := space{}
	waiting := map[string][]sized{}
	for _, p := range all {
		one := sized{p, spaceOf(p)}
		total = total.plus(one.space)
		waiting[p.Namespace] = append(waiting[p.Namespace], one)
	}
	if total.fits() {
		return all, nil
	}
	for _, pods := range waiting {
		slices.SortFunc(pods, func(a, b sized) int {
			return cmp.Or(cmp.Compare(a.share(), b.share()), cmp.Compare(a.UID, b.UID))
		})
	}
	total = space{}
	taken := map[string]space{}
	for len(waiting) > 0 {
		namespace := least(waiting, taken)
		next := waiting[namespace][0]
		if waiting[namespace] = waiting[namespace][1:]; len(waiting[namespace]) == 0 {
			delete(waiting, namespace)
		}
		if !total.plus(next.space).fits() { // a later one may, which has more bytes and fewer probes
			omitted = append(omitted, next.PodProbe)
			continue
		}
		total, taken[namespace] = total.plus(next.space), taken[namespace].plus(next.space)
		fitting = append(fitting, next.PodProbe)
	}
	return fitting, omitted
}

// least is the waiting namespace that has taken the smallest share, the first by name where that is the same.
func least(waiting map[string][]sized, taken map[string]space) string {
	found, first := "", true
	for namespace := range waiting {
		a, b := taken[namespace].share(), taken[found].share()
		if first || a < b || a == b && namespace < found {
			found, first = namespace, false
		}
	}
	return found
}

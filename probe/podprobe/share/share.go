// Package share decides which pods of a node are probed when their probes exceed what one NodePodProbe can hold.
package share

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/internal/must"
)

const (
	// maxNode limits the probes of a node, in bytes.
	maxNode = 768 << 10
	// maxResults limits the probes of a node together with their results, in bytes without messages. etcd accepts 1.5
	// MiB per object (--max-request-bytes); the rest is for messages.
	maxResults = 1280 << 10
	// maxPods is the limit of the schema of NodePodProbe.
	maxPods = 1024
)

// space is how much of a NodePodProbe pods use.
type space struct {
	bytes, withResults, pods, probes int
}

func spaceOf(p v1alpha1.PodProbe) space {
	size, results := len(must.JSON(p)), len(must.JSON(resultsOf(p)))
	return space{bytes: size, withResults: size + results, pods: 1, probes: len(p.Probes)}
}

// resultsOf returns a status as large as a daemon's report about the probes, without messages.
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

// share returns the largest fraction that s uses of any limit.
func (s space) share() float64 {
	return max(float64(s.bytes)/maxNode, float64(s.withResults)/maxResults, float64(s.pods)/maxPods, float64(s.probes)/v1alpha1.MaxProbesOfNode)
}

// sized holds the probes of a pod and the space that they use.
type sized struct {
	v1alpha1.PodProbe
	space
}

// Fit chooses the pods to probe: all, if there is space for them. Otherwise the namespace with the smallest share gets
// space for its next pod, as long as space is left.
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
		namespace := smallestShare(waiting, taken)
		next := waiting[namespace][0]
		if waiting[namespace] = waiting[namespace][1:]; len(waiting[namespace]) == 0 {
			delete(waiting, namespace)
		}
		if !total.plus(next.space).fits() { // a later pod with more bytes and fewer probes may fit
			omitted = append(omitted, next.PodProbe)
			continue
		}
		total, taken[namespace] = total.plus(next.space), taken[namespace].plus(next.space)
		fitting = append(fitting, next.PodProbe)
	}
	return fitting, omitted
}

// smallestShare returns the waiting namespace with the smallest share, and of equals the first by name.
func smallestShare(waiting map[string][]sized, taken map[string]space) string {
	found, first := "", true
	for namespace := range waiting {
		a, b := taken[namespace].share(), taken[found].share()
		if first || a < b || a == b && namespace < found {
			found, first = namespace, false
		}
	}
	return found
}

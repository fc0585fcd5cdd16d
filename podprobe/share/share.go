package podprobe

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/refit-project/refit/api/v1alpha1"
)

const (
	// maxNode bounds the probes of a node in bytes. An object can be 1.5 MiB large, and its status needs space too.
	maxNode = 768 << 10
	// maxPods is the limit of the schema of NodePodProbe.
	maxPods = 1024
)

// space is what pods take of a NodePodProbe.
type space struct {
	bytes, pods, probes int
}

func spaceOf(p v1alpha1.PodProbe) space {
	content, err := json.Marshal(p)
	if err != nil { // all of its types can be encoded
		return space{bytes: maxNode + 1, pods: 1, probes: len(p.Probes)}
	}
	return space{bytes: len(content), pods: 1, probes: len(p.Probes)}
}

func (s space) plus(o space) space {
	return space{bytes: s.bytes + o.bytes, pods: s.pods + o.pods, probes: s.probes + o.probes}
}

func (s space) fits() bool {
	return s.bytes <= maxNode && s.pods <= maxPods && s.probes <= v1alpha1.MaxProbesOfNode
}

// share is the largest part that s has of any limit.
func (s space) share() float64 {
	return max(float64(s.bytes)/maxNode, float64(s.pods)/maxPods, float64(s.probes)/v1alpha1.MaxProbesOfNode)
}

// sized is the probes of a pod with the space that they take.
type sized struct {
	v1alpha1.PodProbe
	space
}

// fit chooses the pods that are probed: all, if there is space for them. Otherwise the namespace that has the least gets
// the space for its next pod, until there is none left.
func fit(all []v1alpha1.PodProbe) (fitting, omitted []v1alpha1.PodProbe) {
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
		if !total.plus(next.space).fits() { // nor do the others of its namespace, which are larger
			for _, p := range waiting[namespace] {
				omitted = append(omitted, p.PodProbe)
			}
			delete(waiting, namespace)
			continue
		}
		total, taken[namespace] = total.plus(next.space), taken[namespace].plus(next.space)
		fitting = append(fitting, next.PodProbe)
		if waiting[namespace] = waiting[namespace][1:]; len(waiting[namespace]) == 0 {
			delete(waiting, namespace)
		}
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

package podprobe

import (
	"hash/fnv"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/internal/managedfields"
	"github.com/refit-project/refit/internal/must"
)

// Planned is what to do for a pod.
type Planned struct {
	// Apply is the complete set of fields to apply.
	Apply Fields
	// Changed says that there is something to write.
	Changed bool
	// Overridden are the labels and annotations that another writer has changed since the last write.
	Overridden []string
}

// Plan compares the desired fields of a pod with the actual ones.
//
// The pod must not be older than Refit's last write to it. last is what was desired at that write, or nil if that is
// not known, for example after a change of the leader. Plan leaves a key that another writer has changed or removed
// since then unchanged until its desired value changes: a marker defines what a change of state sets, it does not
// enforce a value. Such keys are recorded on the pod, in the annotation AnnotationOverridden, so that the next leader
// knows them. Any other key that does not have its desired value is a change that has not been applied yet.
func Plan(pod *corev1.Pod, desired Fields, last *Fields) Planned {
	if last == nil {
		last = &Fields{}
	}
	owned, record := managedfields.OwnedBy(pod), readOverridden(pod.Annotations[v1alpha1.AnnotationOverridden])
	labels := keyPlan{live: pod.Labels, owned: owned.Labels, last: last.Labels, left: record.Labels}
	annotations := keyPlan{live: pod.Annotations, owned: owned.Annotations, last: last.Annotations, left: record.Annotations}
	p := Planned{}
	var kept overridden
	p.Apply.Labels, kept.Labels = labels.of(desired.Labels, &p)
	p.Apply.Annotations, kept.Annotations = annotations.of(desired.Annotations, &p)
	if text := kept.text(); text != "" {
		p.Apply.Annotations[v1alpha1.AnnotationOverridden] = text
		p.Changed = p.Changed || pod.Annotations[v1alpha1.AnnotationOverridden] != text
	}
	for _, keys := range []struct {
		owned map[string]bool
		apply map[string]string
	}{{owned.Labels, p.Apply.Labels}, {owned.Annotations, p.Apply.Annotations}} {
		for key := range keys.owned {
			if _, stays := keys.apply[key]; !stays {
				p.Changed = true
			}
		}
	}
	var changed bool
	p.Apply.Conditions, changed = planConditions(desired.Conditions, pod.Status.Conditions, owned.Conditions)
	p.Changed = p.Changed || changed
	slices.Sort(p.Overridden)
	return p
}

// keyPlan plans the labels or the annotations of one pod.
type keyPlan struct {
	live  map[string]string
	owned map[string]bool
	last  map[string]string // desired at the last write, if known
	left  map[string]string // hashes of the desired values of keys to leave unchanged
}

// of returns the keys to apply, and the keys to leave unchanged with the hashes of their desired values.
func (k keyPlan) of(desired map[string]string, p *Planned) (apply, left map[string]string) {
	apply, left = map[string]string{}, map[string]string{}
	for key, value := range desired {
		live, exists := k.live[key]
		before, known := k.last[key]
		switch {
		case exists && live == value:
			if k.owned[key] {
				apply[key] = value
			} else if ofVirtualNode(key) { // set by the webhook, so nobody owns it; removed together with the markers
				apply[key], p.Changed = value, true
			} // any other key that another writer has set to the same value stays with that writer
		case k.owned[key]:
			apply[key], p.Changed = value, true
		case k.left[key] == hash(value):
			left[key] = hash(value)
		case known && before == value:
			left[key], p.Changed = hash(value), true
			p.Overridden = append(p.Overridden, key)
		default:
			apply[key], p.Changed = value, true
		}
	}
	return apply, left
}

func ofVirtualNode(key string) bool {
	return key == v1alpha1.AnnotationPodProbe || key == v1alpha1.AnnotationPodProbeMarkerList
}

// overridden is the content of the annotation AnnotationOverridden: the hashes of the desired values that other writers
// have replaced, by key.
type overridden struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

func readOverridden(text string) overridden {
	var o overridden
	if err := foreign.JSON(text, &o); err != nil {
		return overridden{} // the annotation is missing, or was edited
	}
	return o
}

// text returns the content of the annotation, or "" if there is nothing to record.
func (o overridden) text() string {
	if len(o.Labels)+len(o.Annotations) == 0 {
		return ""
	}
	return string(must.JSON(o))
}

func hash(value string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(value)) // a hash returns no errors
	return strconv.FormatUint(h.Sum64(), 36)
}

func planConditions(desired, live []corev1.PodCondition, owned map[string]bool) (apply []corev1.PodCondition, changed bool) {
	keep := map[string]bool{}
	for _, c := range desired {
		existing := kubelet.ConditionIn(live, c.Type)
		same := existing != nil && existing.Status == c.Status && existing.Message == c.Message
		if same && !owned[string(c.Type)] {
			continue // a kruise-manager has set the same condition, without a reason
		}
		if same && existing.Reason == c.Reason {
			c = *existing
		} else {
			changed = true
		}
		apply = append(apply, c)
		keep[string(c.Type)] = true
	}
	for kind := range owned {
		changed = changed || !keep[kind]
	}
	return apply, changed
}

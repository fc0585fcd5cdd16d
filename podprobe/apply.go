package podprobe

import (
	"encoding/json"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1alpha1"
)

// FieldManager is the field manager of probe results on pods, which are set by server-side apply to the status
// subresource. The API server records which fields Refit owns, and removes those that are no longer applied unless
// another manager owns them too.
const FieldManager = "refit-podprobe"

// Owned are the keys and condition types of a pod that Refit owns.
type Owned struct {
	Labels, Annotations, Conditions map[string]bool
}

// OwnedBy reads metadata.managedFields.
func OwnedBy(pod *corev1.Pod) Owned {
	owned := Owned{Labels: map[string]bool{}, Annotations: map[string]bool{}, Conditions: map[string]bool{}}
	for _, entry := range pod.ManagedFields {
		if OwnEntry(entry) && entry.FieldsV1 != nil {
			owned.read(entry.FieldsV1.GetRawBytes())
		}
	}
	return owned
}

// OwnEntry reports whether an entry of managedFields is that of FieldManager.
func OwnEntry(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "status"
}

// read parses the format FieldsV1: "f:<name>" is a field, "k:<JSON>" an element of a list by its keys.
func (o Owned) read(fields []byte) {
	var record struct {
		Metadata struct {
			Labels      map[string]json.RawMessage `json:"f:labels"`
			Annotations map[string]json.RawMessage `json:"f:annotations"`
		} `json:"f:metadata"`
		Status struct {
			Conditions map[string]json.RawMessage `json:"f:conditions"`
		} `json:"f:status"`
	}
	if err := json.Unmarshal(fields, &record); err != nil {
		return // written by the API server; without it nothing is owned
	}
	for to, from := range map[*map[string]bool]map[string]json.RawMessage{&o.Labels: record.Metadata.Labels, &o.Annotations: record.Metadata.Annotations} {
		for field := range from {
			if key, ok := strings.CutPrefix(field, "f:"); ok {
				(*to)[key] = true
			}
		}
	}
	for field := range record.Status.Conditions {
		var element struct {
			Type string `json:"type"`
		}
		if key, ok := strings.CutPrefix(field, "k:"); ok && json.Unmarshal([]byte(key), &element) == nil {
			o.Conditions[element.Type] = true
		}
	}
}

// Planned is what has to be done to a pod.
type Planned struct {
	// Apply is the whole set of fields to be applied.
	Apply Fields
	// Changed is false when nothing has to be written.
	Changed bool
	// Overridden are the labels and annotations that are found to have been changed by others since the last write.
	Overridden []string
}

// Plan compares the desired fields of a pod with the actual ones.
//
// The pod must not be older than Refit's last write to it. last is what was desired at that write, nil if that is not
// known, as after a change of the leader. A key that another writer has changed or removed since is left alone until its
// desired value changes: a marker defines what a change of state sets, not a value that is enforced. That is recorded on
// the pod, in the annotation AnnotationOverridden, so that the next leader knows it: any other key that does not have its
// desired value is a change that has not been applied yet.
func Plan(pod *corev1.Pod, desired Fields, last *Fields) Planned {
	if last == nil {
		last = &Fields{}
	}
	owned, record := OwnedBy(pod), readOverridden(pod.Annotations[v1alpha1.AnnotationOverridden])
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
	last  map[string]string // desired at the last write, as far as that is known
	left  map[string]string // hashes of the desired values of keys that are left alone
}

// of returns the keys to apply, and those to leave alone with the hashes of their desired values.
func (k keyPlan) of(desired map[string]string, p *Planned) (apply, left map[string]string) {
	apply, left = map[string]string{}, map[string]string{}
	for key, value := range desired {
		live, exists := k.live[key]
		before, known := k.last[key]
		switch {
		case exists && live == value:
			if k.owned[key] { // a key that others have set to the same value stays theirs
				apply[key] = value
			}
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

// overridden is the content of the annotation AnnotationOverridden: by key, the hash of the desired value that another
// writer has replaced.
type overridden struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

func readOverridden(text string) overridden {
	var o overridden
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return overridden{} // there is none, or it has been edited
	}
	return o
}

// text is empty when there is nothing to record.
func (o overridden) text() string {
	if len(o.Labels)+len(o.Annotations) == 0 {
		return ""
	}
	text, err := json.Marshal(o)
	if err != nil { // strings can be encoded
		return ""
	}
	return string(text)
}

func hash(value string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(value)) // a hash has no errors
	return strconv.FormatUint(h.Sum64(), 36)
}

func planConditions(desired, live []corev1.PodCondition, owned map[string]bool) (apply []corev1.PodCondition, changed bool) {
	keep := map[string]bool{}
	for _, c := range desired {
		existing := findCondition(live, c.Type)
		same := existing != nil && existing.Status == c.Status && existing.Message == c.Message
		if same && !owned[string(c.Type)] {
			continue // a kruise-manager has set the same, without a reason
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

package podprobe

import (
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FieldManager is the field manager of probe results on pods, which are set by server-side apply to the status
// subresource. The API server records which fields Refit owns, and removes those that are no longer applied unless
// another manager owns them too.
const FieldManager = "refit-podprobe"

// Owned are the keys and condition types of a pod that Refit owns.
type Owned struct {
	Labels, Annotations, Conditions map[string]bool
}

// Empty reports whether Refit owns nothing of the pod.
func (o Owned) Empty() bool { return len(o.Labels)+len(o.Annotations)+len(o.Conditions) == 0 }

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

// Plan compares the desired fields of a pod with the actual ones. It returns the whole set to be applied, and false when
// nothing has to be written.
//
// The pod must not be older than Refit's last write to it. last is what was desired at that write, nil if that is not
// known. A key that another writer has changed or removed since is left alone until its desired value changes: a marker
// defines what a change of state sets, not a value that is enforced.
func Plan(pod *corev1.Pod, desired Fields, last *Fields) (Fields, bool) {
	owned := OwnedBy(pod)
	labels := keyPlan{live: pod.Labels, owned: owned.Labels, first: last == nil && owned.Empty()}
	annotations := keyPlan{live: pod.Annotations, owned: owned.Annotations, first: labels.first}
	if last != nil {
		labels.last, annotations.last = last.Labels, last.Annotations
	}
	apply, changed := Fields{}, [3]bool{}
	apply.Labels, changed[0] = labels.of(desired.Labels)
	apply.Annotations, changed[1] = annotations.of(desired.Annotations)
	apply.Conditions, changed[2] = planConditions(desired.Conditions, pod.Status.Conditions, owned.Conditions)
	return apply, changed[0] || changed[1] || changed[2]
}

// keyPlan plans the labels or the annotations of one pod.
type keyPlan struct {
	live  map[string]string
	owned map[string]bool
	last  map[string]string // desired at the last write, nil if that is not known
	first bool              // nothing has been written yet
}

func (p keyPlan) of(desired map[string]string) (apply map[string]string, changed bool) {
	apply = map[string]string{}
	for key, value := range desired {
		live, exists := p.live[key]
		switch {
		case exists && live == value:
			if p.owned[key] { // a key that others have set to the same value stays theirs
				apply[key] = value
			}
		case p.owned[key], p.isNew(key, value), !exists && p.last == nil:
			apply[key], changed = value, true
		}
	}
	for key := range p.owned {
		if _, stays := apply[key]; !stays {
			changed = true
		}
	}
	return apply, changed
}

func (p keyPlan) isNew(key, value string) bool {
	if p.last == nil {
		return p.first
	}
	before, was := p.last[key]
	return !was || before != value
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

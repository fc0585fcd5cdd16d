package podprobe

import (
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FieldManager is the name under which Refit applies what it puts on pods (server-side apply through the status). The
// API server keeps the record of what is ours, and removes what we no longer apply unless it is also somebody else's.
const FieldManager = "refit-podprobe"

// Owned are the fields of a pod that were last set by Refit.
type Owned struct {
	Labels, Annotations, Conditions map[string]bool
}

// Empty reports whether the pod carries nothing of ours.
func (o Owned) Empty() bool { return len(o.Labels)+len(o.Annotations)+len(o.Conditions) == 0 }

// OwnedBy reads the record from metadata.managedFields.
func OwnedBy(pod *corev1.Pod) Owned {
	owned := Owned{Labels: map[string]bool{}, Annotations: map[string]bool{}, Conditions: map[string]bool{}}
	for _, entry := range pod.ManagedFields {
		if OwnRecord(entry) && entry.FieldsV1 != nil {
			owned.read(entry.FieldsV1.GetRawBytes())
		}
	}
	return owned
}

// OwnRecord reports whether an entry of managedFields is Refit's.
func OwnRecord(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "status"
}

// read takes a set of fields in the format FieldsV1: "f:<name>" is a member, "k:<JSON>" an element of a list by its keys.
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
		return // the API server's own; as good as none
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

// Plan compares what a pod is to carry with what it carries. It returns what has to be applied, all of it, and false
// when nothing has to be written.
//
// The pod must not be older than Refit's last write to it. last is what was wanted then, nil if that is not known. A
// key that somebody else has set to another value since, or removed, is theirs until something else is wanted of it:
// the marker says what a change of state brings about, and does not fight.
func Plan(pod *corev1.Pod, wanted Marks, last *Marks) (Marks, bool) {
	owned := OwnedBy(pod)
	labels := plan{there: pod.Labels, owned: owned.Labels, first: last == nil && owned.Empty()}
	annotations := plan{there: pod.Annotations, owned: owned.Annotations, first: labels.first}
	if last != nil {
		labels.last, annotations.last = last.Labels, last.Annotations
	}
	apply, changed := Marks{}, [3]bool{}
	apply.Labels, changed[0] = labels.of(wanted.Labels)
	apply.Annotations, changed[1] = annotations.of(wanted.Annotations)
	apply.Conditions, changed[2] = planConditions(wanted.Conditions, pod.Status.Conditions, owned.Conditions)
	return apply, changed[0] || changed[1] || changed[2]
}

// plan is for the labels or the annotations of one pod.
type plan struct {
	there map[string]string
	owned map[string]bool
	last  map[string]string // what was wanted at the last write, nil if that is not known
	first bool              // nothing has ever been written
}

func (p plan) of(wanted map[string]string) (apply map[string]string, changed bool) {
	apply = map[string]string{}
	for key, value := range wanted {
		live, exists := p.there[key]
		switch {
		case exists && live == value:
			if p.owned[key] { // what others have set to the same value stays theirs alone
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

func (p plan) isNew(key, value string) bool {
	if p.last == nil {
		return p.first
	}
	before, was := p.last[key]
	return !was || before != value
}

func planConditions(wanted, there []corev1.PodCondition, owned map[string]bool) (apply []corev1.PodCondition, changed bool) {
	keep := map[string]bool{}
	for _, c := range wanted {
		live := findCondition(there, c.Type)
		same := live != nil && live.Status == c.Status && live.Message == c.Message
		ours := owned[string(c.Type)]
		if same && !ours {
			continue // a kruise-manager beside us has said the same, without a reason
		}
		if same && live.Reason == c.Reason {
			c = *live
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

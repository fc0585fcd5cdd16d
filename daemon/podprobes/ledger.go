package podprobes

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/result"
)

// maxStatus bounds the status as JSON, in bytes: with the spec it has to stay below etcd's 1.5 MiB for a request.
const maxStatus = 900 << 10

// record is what is known of one probe of one container instance.
type record struct {
	instance            string
	state               v1alpha1.ProbeState
	message             string
	probedAt, changedAt time.Time
	messageAt           time.Time // when the message has changed last
	ended               bool      // the container has ended
	// hidden from the status until then: there is no result yet, and there may soon be one.
	hidden time.Time
}

// recordOf is the record of an instance as it was last written to the status.
func recordOf(instance string, written v1alpha1.ContainerProbeState) *record {
	return &record{
		instance: instance, state: written.State, message: written.Message,
		probedAt: written.LastProbeTime.Time, changedAt: written.LastTransitionTime.Time,
	}
}

// ledger holds the records by pod and probe.
type ledger map[types.UID]*podRecords

type podRecords struct {
	namespace, name string
	probes          map[string]*record
}

// of finds or opens the records of a pod.
func (l ledger) of(p podProbes) *podRecords {
	if l[p.uid] == nil {
		l[p.uid] = &podRecords{namespace: p.namespace, name: p.name, probes: map[string]*record{}}
	}
	return l[p.uid]
}

// size is the number of records.
func (l ledger) size() int {
	n := 0
	for _, p := range l {
		n += len(p.probes)
	}
	return n
}

// status is the ledger as the API has it, in an order that depends on nothing else.
func (l ledger) status(now time.Time) v1alpha1.NodePodProbeStatus {
	var status v1alpha1.NodePodProbeStatus
	for uid, p := range l {
		one := v1alpha1.PodProbeStatus{Name: p.name, Namespace: p.namespace, UID: string(uid)}
		for _, name := range slices.Sorted(maps.Keys(p.probes)) {
			r := p.probes[name]
			if now.Before(r.hidden) {
				continue
			}
			one.ProbeStates = append(one.ProbeStates, v1alpha1.ContainerProbeState{
				Name: name, State: r.state, Message: r.message,
				LastProbeTime: seconds(r.probedAt), LastTransitionTime: seconds(r.changedAt),
			})
		}
		if len(one.ProbeStates) > 0 {
			status.PodProbeStatuses = append(status.PodProbeStatuses, one)
		}
	}
	slices.SortFunc(status.PodProbeStatuses, func(a, b v1alpha1.PodProbeStatus) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return status
}

// hidden is when the next hidden record is shown; zero: there is none.
func (l ledger) hidden(now time.Time) time.Time {
	var next time.Time
	for _, p := range l {
		for _, r := range p.probes {
			if now.Before(r.hidden) && (next.IsZero() || r.hidden.Before(next)) {
				next = r.hidden
			}
		}
	}
	return next
}

// lacks reports whether a status has a probe without a record: its pod is gone, or the spec has it no more.
func (l ledger) lacks(status v1alpha1.NodePodProbeStatus) bool {
	return slices.ContainsFunc(status.PodProbeStatuses, func(p v1alpha1.PodProbeStatus) bool {
		known := l[types.UID(p.UID)]
		return known == nil || slices.ContainsFunc(p.ProbeStates, func(s v1alpha1.ContainerProbeState) bool { return known.probes[s.Name] == nil })
	})
}

// seconds is the resolution of times in the API.
func seconds(t time.Time) metav1.Time {
	if t.IsZero() {
		return metav1.Time{}
	}
	return metav1.NewTime(time.Unix(t.Unix(), 0).UTC())
}

// published finds the state of a probe in a status.
func published(status v1alpha1.NodePodProbeStatus, uid types.UID, name string) (v1alpha1.ContainerProbeState, bool) {
	for _, p := range status.PodProbeStatuses {
		if p.UID != string(uid) {
			continue
		}
		for _, state := range p.ProbeStates {
			if state.Name == name {
				return state, true
			}
		}
	}
	return v1alpha1.ContainerProbeState{}, false
}

// same reports whether b differs from a in nothing but the time of the last probe.
func same(a, b v1alpha1.NodePodProbeStatus) bool {
	return equality.Semantic.DeepEqual(a.Conditions, b.Conditions) && slices.EqualFunc(a.PodProbeStatuses, b.PodProbeStatuses, func(a, b v1alpha1.PodProbeStatus) bool {
		return a.Name == b.Name && a.Namespace == b.Namespace && a.UID == b.UID &&
			slices.EqualFunc(a.ProbeStates, b.ProbeStates, func(a, b v1alpha1.ContainerProbeState) bool {
				return a.Name == b.Name && a.State == b.State && a.Message == b.Message &&
					a.LastTransitionTime.Unix() == b.LastTransitionTime.Unix()
			})
	})
}

// fit cuts all messages to the same length until the status is at most limit bytes of JSON, and returns that length.
func fit(status v1alpha1.NodePodProbeStatus, limit int) (v1alpha1.NodePodProbeStatus, int, error) {
	var messages []*string
	for i := range status.PodProbeStatuses {
		states := status.PodProbeStatuses[i].ProbeStates
		for j := range states {
			messages = append(messages, &states[j].Message)
		}
	}
	cut, err := result.FitMessages(messages, limit, func() (int, error) {
		text, err := json.Marshal(status)
		return len(text), err
	})
	if err != nil {
		err = fmt.Errorf("encode status: %w", err)
	}
	return status, cut, err
}

// transition is the type and reason of the Event for a state; false if there is none for it.
func transition(state v1alpha1.ProbeState) (kind, reason string, ok bool) {
	switch state {
	case v1alpha1.ProbeSucceeded:
		return corev1.EventTypeNormal, eventSucceeded, true
	case v1alpha1.ProbeFailed:
		return corev1.EventTypeWarning, eventFailed, true
	}
	return "", "", false
}

// Package probestatus holds the results of a node's probes, and computes the status of its NodePodProbe from them. It
// only uses values; it does not decide who writes the status and when.
package probestatus

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/internal/result"
)

const (
	// maxSize limits the status encoded as JSON, in bytes.
	maxSize = 900 << 10
	// maxObject limits status and spec together. It is below the 1.5 MiB that etcd accepts (--max-request-bytes), with
	// space for metadata.
	maxObject = 1472 << 10
)

// Limit returns how large the status may be beside the spec, encoded as JSON, in bytes.
func Limit(spec v1alpha1.NodePodProbeSpec) (int, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return 0, fmt.Errorf("encode spec: %w", err)
	}
	return min(maxSize, maxObject-len(text)), nil
}

// Record is what is known about one probe of one container instance.
type Record struct {
	Instance            string
	State               v1alpha1.ProbeState
	Message             string
	ProbedAt, ChangedAt time.Time
	MessageAt           time.Time // when the message last changed
	Ended               bool      // the container has ended
	// Hidden is until when the record is left out of the status: it has no result yet, and may soon have one.
	Hidden time.Time
}

// RecordOf returns the record of an instance that corresponds to what was last written to the status.
func RecordOf(instance string, written v1alpha1.ContainerProbeState) *Record {
	return &Record{
		Instance: instance, State: written.State, Message: written.Message,
		ProbedAt: written.LastProbeTime.Time, ChangedAt: written.LastTransitionTime.Time,
	}
}

// Ledger holds records by pod and probe.
type Ledger map[types.UID]*podRecords

type podRecords struct {
	namespace, name string
	probes          map[string]*Record
}

// Of returns the records of a pod by the names of its probes. It creates the entry of the pod if there is none.
func (l Ledger) Of(namespace, name string, uid types.UID) map[string]*Record {
	if l[uid] == nil {
		l[uid] = &podRecords{namespace: namespace, name: name, probes: map[string]*Record{}}
	}
	return l[uid].probes
}

// Known returns the records of a pod, or nil if it has no entry.
func (l Ledger) Known(uid types.UID) map[string]*Record {
	if l[uid] == nil {
		return nil
	}
	return l[uid].probes
}

// Size returns the number of records.
func (l Ledger) Size() int {
	n := 0
	for _, p := range l {
		n += len(p.probes)
	}
	return n
}

// Status returns the ledger as an API object, in a deterministic order.
func (l Ledger) Status(now time.Time) v1alpha1.NodePodProbeStatus {
	var status v1alpha1.NodePodProbeStatus
	for uid, p := range l {
		one := v1alpha1.PodProbeStatus{Name: p.name, Namespace: p.namespace, UID: string(uid)}
		for _, name := range slices.Sorted(maps.Keys(p.probes)) {
			r := p.probes[name]
			if now.Before(r.Hidden) {
				continue
			}
			one.ProbeStates = append(one.ProbeStates, v1alpha1.ContainerProbeState{
				Name: name, State: r.State, Message: r.Message,
				LastProbeTime: seconds(r.ProbedAt), LastTransitionTime: seconds(r.ChangedAt),
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

// Hidden returns when the next hidden record becomes visible, or zero if there is none.
func (l Ledger) Hidden(now time.Time) time.Time {
	var next time.Time
	for _, p := range l {
		for _, r := range p.probes {
			if now.Before(r.Hidden) && (next.IsZero() || r.Hidden.Before(next)) {
				next = r.Hidden
			}
		}
	}
	return next
}

// seconds truncates a time to the resolution of the API.
func seconds(t time.Time) metav1.Time {
	if t.IsZero() {
		return metav1.Time{}
	}
	return metav1.NewTime(time.Unix(t.Unix(), 0).UTC())
}

// Published returns the state of a probe in a status.
func Published(status v1alpha1.NodePodProbeStatus, uid types.UID, name string) (v1alpha1.ContainerProbeState, bool) {
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

// Same reports whether a and b are equal apart from the times of the last probes.
func Same(a, b v1alpha1.NodePodProbeStatus) bool {
	return equality.Semantic.DeepEqual(a.Conditions, b.Conditions) && slices.EqualFunc(a.PodProbeStatuses, b.PodProbeStatuses, func(a, b v1alpha1.PodProbeStatus) bool {
		return a.Name == b.Name && a.Namespace == b.Namespace && a.UID == b.UID &&
			slices.EqualFunc(a.ProbeStates, b.ProbeStates, func(a, b v1alpha1.ContainerProbeState) bool {
				return a.Name == b.Name && a.State == b.State && a.Message == b.Message &&
					a.LastTransitionTime.Unix() == b.LastTransitionTime.Unix()
			})
	})
}

// Fit cuts messages until the status has at most limit bytes of JSON. It first cuts messages of the namespace whose
// messages are largest in total, so that no namespace uses space at the expense of others. It returns the shortest
// length to which messages were cut.
func Fit(status v1alpha1.NodePodProbeStatus, limit int) (v1alpha1.NodePodProbeStatus, int, error) {
	text, err := json.Marshal(status)
	if err != nil {
		return status, 0, fmt.Errorf("encode status: %w", err)
	}
	byNamespace := map[string][]*string{}
	for i := range status.PodProbeStatuses {
		pod := &status.PodProbeStatuses[i]
		for j := range pod.ProbeStates {
			byNamespace[pod.Namespace] = append(byNamespace[pod.Namespace], &pod.ProbeStates[j].Message)
		}
	}
	others := len(text)
	for _, messages := range byNamespace {
		others -= result.SizeOfMessages(messages)
	}
	return status, result.FitMessages(byNamespace, limit-others), nil
}

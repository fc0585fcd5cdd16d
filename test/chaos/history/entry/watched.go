package entry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The kinds of objects that a client of the run watches, by which the lines of its record name them.
const (
	KindEndpointSlice = "EndpointSlice"
	KindBudget        = "PodDisruptionBudget"
	KindWorkload      = "Deployment"
	KindStatefulSet   = "StatefulSet"
	KindDaemonSet     = "DaemonSet"
)

// WatchLost is the event of a watch that has broken: until the next event of the kind nobody knows what it missed.
const WatchLost = "LOST"

// WatchDeleted is the event of an object that has been deleted.
const WatchDeleted = "DELETED"

// Watched is an event of a watch, as a client of the cluster got it at that time. One of the objects is set, unless the watch was lost.
type Watched struct {
	At    time.Time
	Event string
	Kind  string

	Slice  *discoveryv1.EndpointSlice
	Budget *policyv1.PodDisruptionBudget
	// Workload is also a StatefulSet or DaemonSet: their selector, replicas and template are the same in JSON. The replicas of a
	// DaemonSet are the nodes that are to have a pod.
	Workload *appsv1.Deployment

	// Line of the record.
	Line Line
}

// WatchedLine is how an event is written down.
type WatchedLine struct {
	At     time.Time       `json:"time"`
	Event  string          `json:"event"`
	Kind   string          `json:"kind"`
	Object json.RawMessage `json:"object,omitempty"`
}

// ParseWatched reads the record of the watches.
func ParseWatched(record string, in io.Reader) ([]Watched, error) {
	return parse(record, in, func(line WatchedLine, at Line) (*Watched, error) {
		w, err := watchedOf(line)
		w.Line.Record, w.Line.Number = at.Record, at.Number
		return &w, err
	})
}

func watchedOf(line WatchedLine) (Watched, error) {
	w := Watched{At: line.At, Event: line.Event, Kind: line.Kind, Line: Line{Time: line.At, Text: line.Event + " " + line.Kind}}
	if line.At.IsZero() || line.Event == "" {
		return w, errors.New("watched: want a time and an event")
	}
	if line.Event == WatchLost {
		return w, nil
	}
	var object metav1.Object
	switch line.Kind {
	case KindEndpointSlice:
		w.Slice = &discoveryv1.EndpointSlice{}
		object = w.Slice
	case KindBudget:
		w.Budget = &policyv1.PodDisruptionBudget{}
		object = w.Budget
	case KindWorkload, KindStatefulSet, KindDaemonSet:
		w.Workload = &appsv1.Deployment{}
		object = w.Workload
	default:
		return w, fmt.Errorf("watched: kind %q is not known", line.Kind)
	}
	if err := json.Unmarshal(line.Object, object); err != nil {
		return w, fmt.Errorf("watched %s: %w", line.Kind, err)
	}
	if line.Kind == KindDaemonSet {
		var set appsv1.DaemonSet
		if err := json.Unmarshal(line.Object, &set); err != nil {
			return w, fmt.Errorf("watched %s: %w", line.Kind, err)
		}
		w.Workload.Spec.Replicas = &set.Status.DesiredNumberScheduled
	}
	w.Line.Text += fmt.Sprintf(" %s/%s%s", object.GetNamespace(), object.GetName(), w.detail())
	return w, nil
}

func (w Watched) detail() string {
	switch {
	case w.Slice != nil:
		return fmt.Sprintf(": %d ready of %d", len(ReadyPods(w.Slice)), len(w.Slice.Endpoints))
	case w.Budget != nil:
		status := w.Budget.Status
		return fmt.Sprintf(": %d disruptions allowed, %d of %d healthy", status.DisruptionsAllowed, status.CurrentHealthy, status.DesiredHealthy)
	}
	return ""
}

// ReadyPods are the UIDs of the pods to which clients of the Service are sent.
func ReadyPods(slice *discoveryv1.EndpointSlice) []string {
	var ready []string
	for _, e := range slice.Endpoints {
		if e.TargetRef != nil && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
			ready = append(ready, string(e.TargetRef.UID))
		}
	}
	return ready
}

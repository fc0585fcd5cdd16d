// Package report writes the status of SidecarSets, their Events and their metric. Package sidecarset/status decides
// what they say.
package report

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/recheck"
	"github.com/refit-project/refit/sidecarset/status"
)

// Writer writes statuses, Events and the metric.
type Writer struct {
	Client   client.Client
	Recorder events.EventRecorder
	Clock    func() time.Time
	// Written counts a write of a kind of resource, and wraps its error with what was being done.
	Written func(resource, doing string, err error) error
	// Pods is the number of pods by SidecarSet and state.
	Pods *prometheus.GaugeVec
}

// NewPods returns the metric.
func NewPods() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "refit_manager_sidecarset_pods",
		Help: "Pods of a SidecarSet, by state: matched, updated, ready, updated_ready, in_flight, failed, not_upgradable, not_injected.",
	}, []string{"sidecarset", "state"})
}

// Last is what was last written about a SidecarSet. The zero value means nothing.
type Last struct {
	at time.Time
	// The written status, and the resource version after the write. The stored status may have less, because the CRD of
	// OpenKruise drops conditions and some counters.
	status  *v1beta1.SidecarSetStatus
	version string
}

// Inherit returns the state for another version of the SidecarSet, whose status is written at once.
func (l Last) Inherit() Last { return Last{status: l.status, version: l.version} }

// Write writes the status if it has changed, and returns when to call it again.
func (w *Writer) Write(ctx context.Context, object *v1beta1.SidecarSet, observed *status.Observed, last *Last) (recheck.At, error) {
	w.measure(object.Name, observed)
	now, before, changed := w.Clock(), object.DeepCopy(), object.DeepCopy()
	if last.status != nil && last.version == object.ResourceVersion {
		before.Status = *last.status
	}
	next, again := status.Next(before, observed, now)
	if equality.Semantic.DeepEqual(&before.Status, next) {
		return again, nil
	}
	if due := status.Due(&before.Status, next, last.at); now.Before(due) {
		return again.Or(due), nil
	}
	last.at = now
	changed.Status = *next.DeepCopy()
	err := w.Written("sidecarsets", "write status of SidecarSet "+object.Name, w.Client.Status().Update(ctx, changed))
	if err != nil {
		return again, client.IgnoreNotFound(err)
	}
	last.status, last.version = next, changed.ResourceVersion
	changed.Status = *next
	w.sendEvents(before, changed)
	return again, nil
}

func (w *Writer) measure(name string, o *status.Observed) {
	c := &o.Counts
	for state, number := range map[string]int{
		"matched": c.Matched, "updated": c.Updated, "ready": c.Ready, "updated_ready": c.UpdatedReady, "in_flight": c.InFlight,
		"failed": c.Failed, "not_upgradable": c.NotUpgradable, "not_injected": o.NotInjected,
	} {
		w.Pods.WithLabelValues(name, state).Set(float64(number))
	}
}

// Forget removes the metric of a SidecarSet.
func (w *Writer) Forget(name string) {
	w.Pods.DeletePartialMatch(prometheus.Labels{"sidecarset": name})
}

// sendEvents sends the Events of a rollout when its state changes.
func (w *Writer) sendEvents(before, after *v1beta1.SidecarSet) {
	for _, news := range status.Changed(before, after) {
		w.Recorder.Eventf(after, nil, news.Severity, news.Reason, "Rollout", "%s", news.Message)
	}
}

// Subject returns a pod as the subject of an Event.
func Subject(key types.NamespacedName, uid types.UID) *corev1.Pod {
	return &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: uid}}
}

// Short returns the message of an error, shortened for an Event.
func Short(err error) string {
	const longest = 800
	return foreign.Cut(err.Error(), longest)
}

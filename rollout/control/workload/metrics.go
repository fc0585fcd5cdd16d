package workload

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

// metrics are the metrics of the controller.
type metrics struct {
	writes   *prometheus.CounterVec
	pods     *prometheus.GaugeVec
	updates  *prometheus.CounterVec
	failed   prometheus.Counter
	duration *prometheus.HistogramVec
}

func newMetrics() *metrics {
	return &metrics{
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "refit_manager_inplaceupdate_writes_total",
			Help: "Writes to the API server for InPlaceUpdatePolicies, by resource: pods, replicasets, workloads, imagepulljobs, containerrecreaterequests, inplaceupdatepolicies.",
		}, []string{"resource"}),
		pods: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "refit_manager_inplaceupdate_pods",
			Help: "Pods of the workload of an InPlaceUpdatePolicy, by state: matched, updated, updated_ready, updating, failed, unavailable.",
		}, []string{"namespace", "policy", "state"}),
		updates: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "refit_manager_inplaceupdate_updates_total",
			Help: "Updates of workloads, by the kind of the workload and outcome: completed, failed (no further pod is updated), undone, replaced (by the controller of the workload), refused (not possible in place). An update that has failed can have another outcome later.",
		}, []string{"kind", "outcome"}),
		failed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "refit_manager_inplaceupdate_pod_failures_total",
			Help: "Pods whose update in place has failed for an InPlaceUpdatePolicy.",
		}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "refit_manager_inplaceupdate_update_duration_seconds",
			Help:    "Duration of completed updates of workloads, from the decision to update the first pod until all pods are available, pauses included, by the kind of the workload.",
			Buckets: []float64{1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 14400, 86400},
		}, []string{"kind"}),
	}
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.writes, m.pods, m.updates, m.failed, m.duration}
}

// count records the counts of a new status.
func (m *metrics) count(policy *v1alpha1.InPlaceUpdatePolicy, status *v1alpha1.InPlaceUpdatePolicyStatus) {
	for state, number := range map[string]int32{
		"matched": status.MatchedPods, "updated": status.UpdatedPods, "updated_ready": status.UpdatedReadyPods,
		"updating": status.UpdatingPods, "failed": status.FailedPods, "unavailable": status.UnavailablePods,
	} {
		m.pods.WithLabelValues(policy.Namespace, policy.Name, state).Set(float64(number))
	}
	m.failed.Add(float64(max(0, status.FailedPods-policy.Status.FailedPods)))
}

// forget removes the pods of a policy that does not exist any more.
func (m *metrics) forget(policy types.NamespacedName) {
	m.pods.DeletePartialMatch(prometheus.Labels{"namespace": policy.Namespace, "policy": policy.Name})
}

// outcomes are the outcomes of updates by the reason of the condition Progressing.
var outcomes = map[string]string{
	v1alpha1.ReasonPodsFailed: "failed", v1alpha1.ReasonImagePullFailed: "failed", v1alpha1.ReasonUndone: "undone", v1alpha1.ReasonReplacing: "replaced", v1alpha1.ReasonNotInPlace: "refused",
}

// progress records a new reason of the condition Progressing, which was nil or had another one. Pods that were replaced are no completed update.
func (m *metrics) progress(policy *v1alpha1.InPlaceUpdatePolicy, before *v1alpha1.InPlaceUpdatePolicyStatus, was, is *metav1.Condition, now time.Time) {
	kind := policy.Spec.TargetRef.Kind
	switch outcome := outcomes[is.Reason]; {
	case is.Reason == v1alpha1.ReasonUndone && before.UndoneRevision == policy.Status.UndoneRevision: // written again
	case outcome != "":
		m.updates.WithLabelValues(kind, outcome).Inc()
	case is.Reason == v1alpha1.ReasonCompleted && before.Update != nil && (was == nil || was.Reason != v1alpha1.ReasonReplacing):
		m.updates.WithLabelValues(kind, "completed").Inc()
		m.duration.WithLabelValues(kind).Observe(now.Sub(before.Update.StartTime.Time).Seconds())
	}
}

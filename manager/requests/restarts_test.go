package requests

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/refit-project/refit/api/v1beta1"
)

func TestRestartsAreCountedByCause(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		stopped          string // the instance that a request has stopped
		pending          bool   // the daemon has written no status since the stop
		pod              string // of the request
		before, after    int32
		requested, other float64
	}{
		"no restart":             {stopped: "containerd://app1", pod: "web"},
		"requested":              {stopped: "containerd://app1", pod: "web", after: 1, requested: 1},
		"status not yet written": {stopped: "containerd://app1", pending: true, pod: "web", after: 1, requested: 1},
		"crash":                  {pod: "web", after: 1, other: 1},
		"crash after a request":  {stopped: "containerd://app0", pod: "web", before: 1, after: 2, other: 1},
		"request for another":    {stopped: "containerd://app1", pod: "db", after: 1, other: 1},
		"requested, and a crash": {stopped: "containerd://app1", pod: "web", after: 2, requested: 1, other: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := storedRequest(t)
			request.Spec.PodName = tc.pod
			if tc.stopped != "" {
				request.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{{Name: "app", Phase: v1beta1.ContainerRecreateRequestRecreating, ContainerID: tc.stopped}}
			}
			if tc.pending {
				request.Status.ContainerRecreateStates[0].Phase = v1beta1.ContainerRecreateRequestPending
			}
			total := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "x"}, []string{"cause"})
			r := &restarts{reader: fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(client.Object(request)).Build(), total: total, log: discard}
			was, is := testPod(), testPod()
			was.Status.ContainerStatuses[0].RestartCount = tc.before
			is.Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "app", ContainerID: "containerd://app2", RestartCount: tc.after}
			r.count(t.Context(), was, is)
			if got := testutil.ToFloat64(total.WithLabelValues(causeRequested)); got != tc.requested {
				t.Errorf("%v requested, want %v", got, tc.requested)
			}
			if got := testutil.ToFloat64(total.WithLabelValues(causeOther)); got != tc.other {
				t.Errorf("%v others, want %v", got, tc.other)
			}
		})
	}
}

// What cannot be looked up is not called requested.
func TestRestartIsNotRequestedIfRequestsCannotBeRead(t *testing.T) {
	t.Parallel()
	r := &restarts{reader: failingReader{err: apierrors.NewServiceUnavailable("down")}, log: discard}
	if r.requested(t.Context(), testPod(), &testPod().Status.ContainerStatuses[0]) {
		t.Error("requested")
	}
}

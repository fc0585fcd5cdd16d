package control

import (
	"testing"

	"github.com/google/go-cmp/cmp"
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

// restartsOf is the counter with an API server that has the objects.
func restartsOf(t *testing.T, objects ...client.Object) *restarts {
	t.Helper()
	total := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "x"}, []string{"cause"})
	return &restarts{reader: fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(objects...).Build(), total: total, log: discard}
}

func (r *restarts) counted() map[string]float64 {
	return map[string]float64{causeRequested: testutil.ToFloat64(r.total.WithLabelValues(causeRequested)), causeOther: testutil.ToFloat64(r.total.WithLabelValues(causeOther))}
}

func TestRestartsOfAllContainersOfAPodAreCounted(t *testing.T) {
	t.Parallel()
	request := storedRequest(t)
	request.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{
		{Name: "app", Phase: v1beta1.ContainerRecreateRequestSucceeded, ContainerID: "containerd://app1"}, {Name: "proxy", Phase: v1beta1.ContainerRecreateRequestRecreating, ContainerID: "containerd://proxy1"},
	}
	was, is := testPod(), testPod()
	was.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "proxy", ContainerID: "containerd://proxy1"}, {Name: "log", ContainerID: "containerd://log1", RestartCount: 3}}
	is.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", RestartCount: 1}, {Name: "new", RestartCount: 7}}
	is.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "log", RestartCount: 5}, {Name: "proxy", RestartCount: 1}}
	r := restartsOf(t, request)
	r.count(t.Context(), was, is)
	if diff := cmp.Diff(map[string]float64{causeRequested: 2, causeOther: 2}, r.counted()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The CRD of OpenKruise has no field for the instance: only the annotation tells which one was stopped.
func TestARestartWhoseInstanceIsOnlyInTheAnnotationIsRequested(t *testing.T) {
	t.Parallel()
	for recorded, want := range map[string]map[string]float64{
		`{"app":"containerd://app1"}`: {causeRequested: 1, causeOther: 0},
		`{"app":"containerd://app0"}`: {causeRequested: 0, causeOther: 1},
	} {
		request := storedRequest(t)
		request.Annotations[v1beta1.AnnotationInstances] = recorded
		request.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{{Name: "app", Phase: v1beta1.ContainerRecreateRequestRecreating}}
		was, is := testPod(), testPod()
		is.Status.ContainerStatuses[0].RestartCount = 1
		r := restartsOf(t, request)
		r.count(t.Context(), was, is)
		if diff := cmp.Diff(want, r.counted()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", recorded, diff)
		}
	}
}

func TestARestartOfAnInstanceThatNobodyKnowsIsNotRequested(t *testing.T) {
	t.Parallel()
	request := storedRequest(t)
	request.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{{Name: "app", Phase: v1beta1.ContainerRecreateRequestPending}}
	other := storedRequest(t) // of a pod of the same name in another namespace
	other.Namespace, other.Status.ContainerRecreateStates = "bank", []v1beta1.ContainerRecreateRequestRecreateState{{Name: "app", Phase: v1beta1.ContainerRecreateRequestRecreating, ContainerID: "containerd://app1"}}
	r := restartsOf(t, request, other)
	for _, id := range []string{"", "containerd://app1"} {
		if r.requested(t.Context(), testPod(), &corev1.ContainerStatus{Name: "app", ContainerID: id}) {
			t.Errorf("%q is requested", id)
		}
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

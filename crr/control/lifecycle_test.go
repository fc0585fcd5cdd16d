package control

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/cache"
	"github.com/refit-project/refit/internal/cache/trim"
	"github.com/refit-project/refit/test/kit/recorder"
)

func TestASimpleRequestCostsOneWrite(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t, testPod(), testNode(), storedRequest(t))
	if writes, again := w.settle(); len(writes) > 0 || again != 59*time.Second {
		t.Errorf("fresh: wrote %q, looks again in %v; want a look in 59s", writes, again)
	}
	w.change(taken)
	if writes, again := w.settle(); len(writes) > 0 || again != 0 {
		t.Errorf("taken: wrote %q, looks again in %v", writes, again)
	}
	w.change(recreated)
	writes, _ := w.settle()
	if diff := cmp.Diff([]string{"patch r"}, writes); diff != "" {
		t.Errorf("recreated (-want +got):\n%s", diff)
	}
	if _, active := w.request().Labels[v1beta1.LabelActive]; active {
		t.Error("still active")
	}
	if text := recorder.Next(w.events); text != "" {
		t.Errorf("event %q", text)
	}
}

func TestDrainFromTakenToReadyAgain(t *testing.T) {
	t.Parallel()
	request := storedRequest(t)
	request.Spec.Strategy.UnreadyGracePeriodSeconds = new(int64(5))
	request.Spec.TTLSecondsAfterFinished = new(int32(60))
	w := newAPIServer(t, testPod(), testNode(), request)
	w.change(taken)

	writes, _ := w.settle()
	if diff := cmp.Diff([]string{"patch r", "patch web/status", "patch r/status", "patch r"}, writes); diff != "" {
		t.Errorf("taken (-want +got):\n%s", diff)
	}
	if text := recorder.Next(w.events); !strings.Contains(text, "PodMadeNotReady") {
		t.Errorf("event %q", text)
	}
	if gate := w.pod().Status.Conditions; len(gate) != 2 || gate[0].Status != "False" || gate[1].Message != `[{"userAgent":"ContainerRecreateRequest","key":"shop/r"}]` {
		t.Errorf("conditions of the pod: %+v", gate)
	}
	if got := w.pod().Spec.NodeName; got != "node-1" {
		t.Errorf("the pod's spec was changed: node %q", got)
	}

	w.change(recreated)
	writes, again := w.settle()
	if diff := cmp.Diff([]string{"patch web/status", "patch r"}, writes); diff != "" {
		t.Errorf("recreated (-want +got):\n%s", diff)
	}
	if text := recorder.Next(w.events); !strings.Contains(text, "Normal PodReadinessReturned") || !strings.Contains(text, "Pod web ") {
		t.Errorf("event %q", text)
	}
	if again != 61*time.Second {
		t.Errorf("looks again in %v, want at the end of the time to live", again)
	}
	if r := w.request(); len(r.Finalizers) > 0 || r.Labels[v1beta1.LabelActive] != "" {
		t.Errorf("finalizers %q, labels %v", r.Finalizers, r.Labels)
	}

	w.now = noon.Add(time.Hour)
	if writes, _ := w.settle(); !cmp.Equal(writes, []string{"delete r"}) {
		t.Errorf("time to live over: wrote %q", writes)
	}
}

func TestPodChangesReconcileOpenAndDrainingRequests(t *testing.T) {
	t.Parallel()
	ended := storedRequest(t)
	taken(ended)
	recreated(ended)
	holding := ended.DeepCopy()
	holding.Name, holding.Finalizers = "holding", []string{v1beta1.FinalizerUnreadyAcquired}
	open := storedRequest(t)
	open.Name = "open"
	other := storedRequest(t)
	other.Name, other.Spec.PodName = "other", "db"
	w := newAPIServer(t, testPod(), ended, holding, open, other)
	var got []string
	for _, r := range w.reconciler.requestsOfPod(t.Context(), testPod()) {
		got = append(got, r.Name)
	}
	if diff := cmp.Diff([]string{"holding", "open"}, got); diff != "" {
		t.Errorf("requests concerned (-want +got):\n%s", diff)
	}
	got = nil
	for _, r := range w.reconciler.requestsOfPod(t.Context(), daemonPod()) {
		got = append(got, r.Name)
	}
	if diff := cmp.Diff([]string{"open", "other"}, got); diff != "" {
		t.Errorf("requests of the daemon of their node (-want +got):\n%s", diff)
	}
	elsewhere := daemonPod()
	elsewhere.Spec.NodeName = "node-2"
	if got := w.reconciler.requestsOfPod(t.Context(), elsewhere); len(got) > 0 {
		t.Errorf("requests of the daemon of another node: %v", got)
	}
}

func TestDaemonThatNeverRespondsEndsTheRequest(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t, testPod(), testNode(), storedRequest(t))
	w.now = noon.Add(time.Minute)
	writes, _ := w.settle()
	if diff := cmp.Diff([]string{"patch r/status", "patch r"}, writes); diff != "" {
		t.Errorf("wrote (-want +got):\n%s", diff)
	}
	if text := recorder.Next(w.events); !strings.Contains(text, "Warning DaemonNotResponding") || !strings.Contains(text, "node-1") {
		t.Errorf("event %q", text)
	}
}

func TestPodOrNodeIsGoneOnlyIfTheAPIServerSaysSo(t *testing.T) {
	t.Parallel()
	replaced := func() client.Object {
		pod := testPod()
		pod.UID = "uid-0"
		return pod
	}
	for name, tc := range map[string]struct {
		cached, live []client.Object
		wantPhase    v1beta1.ContainerRecreateRequestPhase
		wantReason   string
	}{
		"pod not in the cache yet":  {cached: []client.Object{testNode()}, live: []client.Object{testPod(), testNode()}},
		"old pod still in cache":    {cached: []client.Object{replaced(), testNode()}, live: []client.Object{testPod(), testNode()}},
		"node not in the cache yet": {cached: []client.Object{testPod()}, live: []client.Object{testPod(), testNode()}},
		"pod gone":                  {cached: []client.Object{testNode()}, live: []client.Object{testNode()}, wantPhase: "Completed", wantReason: "PodGone"},
		"pod replaced":              {cached: []client.Object{testNode()}, live: []client.Object{replaced(), testNode()}, wantPhase: "Completed", wantReason: "PodGone"},
		"node gone":                 {cached: []client.Object{testPod()}, live: []client.Object{testPod()}, wantPhase: "Completed", wantReason: "NodeGone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newAPIServer(t, append(tc.cached, storedRequest(t))...)
			w.reconciler.live = fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(tc.live...).Build()
			w.reconciler.nodes = cache.NewNodes(w, w.reconciler.live)
			w.settle()
			status := w.request().Status
			reason := ""
			for _, c := range status.Conditions {
				reason = c.Reason
			}
			if status.Phase != tc.wantPhase || reason != tc.wantReason {
				t.Errorf("phase %q, reason %q; want %q, %q", status.Phase, reason, tc.wantPhase, tc.wantReason)
			}
		})
	}
}

func TestDeletedRequestIsIgnored(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t)
	if result, err := w.reconciler.Reconcile(t.Context(), key); err != nil || result != (ctrl.Result{}) {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestALookUpThatFailsEndsNothing(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t, storedRequest(t))
	w.reconciler.live = failingReader{err: apierrors.NewServiceUnavailable("down")}
	if _, err := w.reconciler.Reconcile(t.Context(), key); !errors.As(err, new(apierrors.APIStatus)) {
		t.Errorf("got %v", err)
	}
	if len(w.writes) > 0 {
		t.Errorf("wrote %q", w.writes)
	}
}

type failingReader struct {
	client.Reader
	err error
}

func (f failingReader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return f.err
}

func (f failingReader) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return f.err
}

func TestPodChanged(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		edit func(*corev1.Pod)
		want bool
	}{
		"only the version":  {edit: func(p *corev1.Pod) { p.ResourceVersion = "9"; p.Annotations = map[string]string{"a": "b"} }},
		"container's state": {edit: func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Ready = true }, want: true},
		"readiness":         {edit: func(p *corev1.Pod) { p.Status.Conditions[0].Status = "False" }, want: true},
		"deletion":          {edit: func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} }, want: true},
		"another pod":       {edit: func(p *corev1.Pod) { p.UID = "uid-2" }, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := testPod()
			tc.edit(after)
			if got := podChanged().Update(event.UpdateEvent{ObjectOld: trimmed(t, testPod()), ObjectNew: trimmed(t, after)}); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func trimmed(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	return trim.NewPods(PodPart()).Of(pod)
}

// Writes that are not urgent wait until the requests of a node that were created together have ended.
func TestLabelsAreRemovedAfterTheOtherRequestsOfTheNodeHaveEnded(t *testing.T) {
	t.Parallel()
	other, elsewhere := storedRequest(t), storedRequest(t)
	other.Name, other.UID = "other", "uid-other"
	elsewhere.Name, elsewhere.UID, elsewhere.Labels[v1beta1.LabelNodeName] = "elsewhere", "uid-elsewhere", "node-2"
	w := newAPIServer(t, testPod(), testNode(), storedRequest(t), other, elsewhere)
	w.change(taken)
	w.change(recreated)
	if writes, again := w.settle(); len(writes) > 0 || again != 2*time.Second {
		t.Errorf("while another one is carried out: wrote %q, looks again in %v", writes, again)
	}
	if err := w.Delete(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	writes, _ := w.settle()
	if diff := cmp.Diff([]string{"patch r"}, writes); diff != "" {
		t.Errorf("afterwards (-want +got):\n%s", diff)
	}
}

// The watch of requests may be faster than the watch of pods.
func TestPodIsReadyAgainThoughTheCacheDoesNotShowThatItIsNot(t *testing.T) {
	t.Parallel()
	request := storedRequest(t)
	request.Spec.Strategy.UnreadyGracePeriodSeconds = new(int64(5))
	w := newAPIServer(t, testPod(), testNode(), request)
	before := w.pod()
	w.change(taken)
	w.settle()
	w.change(recreated)
	w.reconciler.client = stalePods{Client: w, pod: before}
	w.settle()
	if gate := w.pod().Status.Conditions[1]; gate.Status != corev1.ConditionTrue || len(w.request().Finalizers) > 0 {
		t.Errorf("%+v after the request has ended, finalizers %q", gate, w.request().Finalizers)
	}
}

type stalePods struct {
	client.Client
	pod *corev1.Pod
}

func (s stalePods) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if pod, ok := into.(*corev1.Pod); ok {
		s.pod.DeepCopyInto(pod)
		return nil
	}
	return s.Client.Get(ctx, key, into, opts...)
}

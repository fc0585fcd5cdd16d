package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/internal/cache/trim"
	"github.com/refit-project/refit/test/kit/recorder"
)

// unreachable fails all writes to pods until it is told not to.
type unreachable struct {
	client.Client
	down     atomic.Bool
	attempts atomic.Int32
}

func (u *unreachable) Status() client.SubResourceWriter {
	u.attempts.Add(1)
	if u.down.Load() {
		return brokenStatus{u.Client.Status()}
	}
	return u.Client.Status()
}

type brokenStatus struct{ client.SubResourceWriter }

func (brokenStatus) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return errors.New("API server is down")
}

// Reconcilers, as controller-runtime calls them, only request; the Writer retries and paces.
func TestResultsReachThePodOnceTheAPIServerIsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newAPIServer(t, testNode(), gameMarker("m"), gamePod("a"))
		w.report(results("a", v1alpha1.ProbeSucceeded, "m#idle"))
		access := &unreachable{Client: w.Client}
		access.down.Store(true)
		w.client = access
		r := newPodReconciler(w.api, 2)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.writer.Run(ctx) }()
		key := types.NamespacedName{Namespace: "shop", Name: "a"}
		for range 100 { // events while it is down do not make it worse
			if _, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: key}); err != nil {
				t.Error(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		if n := access.attempts.Load(); n < 4 || n > 7 {
			t.Errorf("%d attempts in ten seconds", n)
		}
		access.down.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := w.podNamed("a").Labels["m"]; got != "idle" {
			t.Errorf("label %q", got)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// slow is an API server that takes a tenth of a second to read a pod, and takes down which.
type slow struct {
	client.Client
	read []types.NamespacedName
}

func (s *slow) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	s.read = append(s.read, key)
	time.Sleep(100 * time.Millisecond)
	return apierrors.NewNotFound(corev1.Resource("pods"), key.Name)
}

func TestPodsOfANamespaceDoNotHoldUpThoseOfAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newAPIServer(t)
		access := &slow{Client: w.Client}
		w.client = access
		r := newPodReconciler(w.api, 1)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.writer.Run(ctx) }()
		for n := range 50 {
			r.writer.Request(types.NamespacedName{Namespace: "loud", Name: fmt.Sprint(n)})
		}
		synctest.Wait()
		quiet := types.NamespacedName{Namespace: "quiet", Name: "a"}
		r.writer.Request(quiet)
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		if !slices.Contains(access.read, quiet) {
			t.Errorf("read were %v", access.read)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestDeletedPodsAreForgotten(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t, testNode(), gameMarker("m"), gamePod("a"))
	r := newPodReconciler(w.api, 1)
	w.report(results("a", v1alpha1.ProbeSucceeded, "m#idle"))
	w.settle(writing{r.destination}, "shop", "a")
	if len(r.destination.applied) != 1 {
		t.Fatal("nothing was applied")
	}
	gone := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}}
	if requests := r.changedPod(t.Context(), gone, nil); len(requests) > 0 || len(r.destination.applied) > 0 {
		t.Errorf("%v requested, %v remembered", requests, r.destination.applied)
	}
}

func TestAnOverriddenResultIsReportedOnce(t *testing.T) {
	t.Parallel()
	w := newAPIServer(t, testNode(), gameMarker("m"), gamePod("a"))
	d := newPodDestination(w.api)
	w.report(results("a", v1alpha1.ProbeFailed, "m#idle"))
	same(t, "writes", w.settle(writing{d}, "shop", "a"), "apply status a")
	edit(w, gamePod("a"), func(p *corev1.Pod) { p.Annotations["cost"] = "77" })
	record := w.records["a"]
	record.FieldsV1 = metav1.NewFieldsV1(strings.ReplaceAll(string(record.FieldsV1.GetRawBytes()), `"f:cost":{}`, ""))
	w.records["a"] = record // an update by somebody else ends the ownership
	same(t, "writes", w.settle(writing{d}, "shop", "a"), "apply status a")
	if event := recorder.Next(w.events); !strings.Contains(event, "Normal ProbeResultOverridden") || !strings.Contains(event, "cost") {
		t.Errorf("event %q", event)
	}
	next := newPodDestination(w.api) // of the next leader
	same(t, "writes of the next leader", w.settle(writing{next}, "shop", "a"))
	if event := recorder.Next(w.events); event != "" || w.podNamed("a").Annotations["cost"] != "77" {
		t.Errorf("event %q, annotations %v", event, w.podNamed("a").Annotations)
	}
}

func trimmed(t testing.TB, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	return trim.NewPods(PodPart()).Of(pod)
}

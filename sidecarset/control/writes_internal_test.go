package control

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/v1beta1"
)

func maxUnavailable(n int32) *intstr.IntOrString { return new(intstr.FromInt32(n)) }

// failing cannot read SidecarSets.
func failing(c client.Client) client.Client {
	return interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("connection refused")
		},
	})
}

// conditions lets patches of the status of pods be answered by a function, and counts them. Nil is the API server's own answer.
func (w *world) conditions(answer func(n int) error) *int {
	n := 0
	w.r.client = interceptor.NewClient(w.r.client.(client.WithWatch), interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, subresource string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			n++
			if err := answer(n); err != nil {
				return err
			}
			return c.SubResource(subresource).Patch(ctx, object, patch, options...)
		},
	})
	return &n
}

// fixed makes the SidecarSet differ in what cannot be changed in a running pod.
func fixed(s *v1beta1.SidecarSetSpec) {
	s.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}
}

// The API server refuses a patch with another UID than the pod has.
func TestConditionIsOfThePodThatWasSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.look()
	var sent string
	w.r.client = interceptor.NewClient(w.r.client.(client.WithWatch), interceptor.Funcs{
		SubResourcePatch: func(_ context.Context, _ client.Client, _ string, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
			data, err := patch.Data(object)
			sent = string(data)
			return err
		},
	})
	w.change(fixed)
	if w.reconcile(); !strings.Contains(sent, `"uid":"uid-web-`) {
		t.Errorf("patch %s", sent)
	}
}

func TestConditionOfAPodIsWrittenOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.look()
	writes := w.conditions(func(int) error { return nil })
	w.change(fixed)
	w.reconcile()
	w.reconcile() // before the event of the write has come
	w.look()
	if *writes != 1 {
		t.Errorf("%d writes", *writes)
	}
	pod := w.pod("web-0")
	pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == v1beta1.ConditionSidecarSetUpgradable })
	w.check(w.Status().Update(t.Context(), pod))
	if !w.updated(pod) {
		t.Error("another client has removed the condition, and the controller does not look")
	}
	if w.reconcile(); *writes != 2 {
		t.Errorf("%d writes after that", *writes)
	}
}

func TestConditionThatCannotBeWrittenIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		told int // Events
	}{
		"denied":      {errors.New("denied by a webhook"), 1},
		"conflict":    {apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "web-0", errors.New("another of its name")), 0},
		"pod is gone": {apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "web-0"), 0},
	} {
		w := newWorld(t, 1)
		w.look()
		w.said()
		writes := w.conditions(func(n int) error {
			if n == 1 {
				return tt.err
			}
			return nil
		})
		w.change(fixed)
		w.reconcile()
		told := 0
		for _, text := range w.said() {
			if strings.HasPrefix(text, "Warning SidecarUpdateFailed") {
				told++
			}
		}
		w.rounds(3)
		if told != tt.told || *writes != 2 {
			t.Errorf("%s: %d Events, %d writes", name, told, *writes)
		}
	}
}

// A webhook that always refuses is not asked each second.
func TestDeniedUpdateIsTriedLessAndLessOften(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.look()
	w.denied["web-0"] = true
	w.change(image("log:2"))
	began := w.now
	var tries []time.Duration
	for w.now.Sub(began) < 20*time.Minute {
		again := w.reconcile()
		for _, text := range w.said() {
			if strings.HasPrefix(text, "Warning SidecarUpdateFailed SidecarSet logs: ") && strings.Contains(text, "denied by a webhook") {
				tries = append(tries, w.now.Sub(began))
			}
		}
		if again == 0 {
			t.Fatal("the controller does not look again")
		}
		w.now = w.now.Add(again)
	}
	want := []time.Duration{0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 811, 1111}
	for i := range want {
		want[i] *= time.Second
	}
	if !slices.Equal(tries, want) {
		t.Errorf("tries at %s, want %s", tries, want)
	}
	w.denied = map[string]bool{}
	w.now = w.now.Add(time.Hour)
	w.reconcile()
	if got := w.images(); got["log:2"] != 1 {
		t.Fatalf("%v when nothing denies it any more", got)
	}
	w.kubelet()
	w.look()
	w.denied["web-0"] = true
	w.change(image("log:3"))
	if again := w.reconcile(); again != time.Second {
		t.Errorf("the next one is tried again in %s", again)
	}
}

// What is written is decided from the pod as it is now.
func TestPodThatHasBecomeAnotherIsNotUpdated(t *testing.T) {
	t.Parallel()
	for name, become := range map[string]func(w *world, pod *corev1.Pod){
		"gone": func(w *world, pod *corev1.Pod) { w.check(w.Delete(w.t.Context(), pod)) },
		"being deleted": func(w *world, pod *corev1.Pod) {
			pod.Finalizers = []string{"example.org/keep"}
			w.check(w.Update(w.t.Context(), pod))
			w.check(w.Delete(w.t.Context(), pod))
		},
		"another of its name": func(w *world, pod *corev1.Pod) {
			w.check(w.Delete(w.t.Context(), pod))
			pod.UID, pod.ResourceVersion = "another", ""
			w.check(w.Create(w.t.Context(), pod))
		},
		"without the annotations": func(w *world, pod *corev1.Pod) {
			pod.Annotations = nil
			w.check(w.Update(w.t.Context(), pod))
		},
	} {
		w := newWorld(t, 2)
		w.look()
		w.change(image("log:2"))
		w.look()
		w.kubelet()
		for _, s := range w.r.all() {
			w.check(w.r.observeAll(t.Context(), s))
		}
		for _, pod := range w.pods() {
			if pod.Spec.Containers[1].Image == "log:1" {
				become(w, &pod)
			}
		}
		w.r.lastPodEvent.Store(w.now.UnixNano()) // pods are not read all at once
		w.said()
		w.reconcile()
		if got := w.images(); got["log:2"] != 1 {
			t.Errorf("%s: %v", name, got)
		}
		for _, text := range w.said() {
			if strings.Contains(text, "SidecarUpdateFailed") {
				t.Errorf("%s: %s", name, text)
			}
		}
	}
}

func TestPodWithoutAControllerIsNotEvicted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.look()
	w.change(func(s *v1beta1.SidecarSetSpec) {
		fixed(s)
		s.UpdateStrategy.RecreatePolicy = v1beta1.RecreateEvict
	})
	w.rounds(3)
	told := false
	for _, text := range w.said() {
		told = told || strings.Contains(text, "no controller would recreate it")
	}
	if len(w.pods()) != 1 || !told {
		t.Errorf("%d pods, told %t", len(w.pods()), told)
	}
}

// Counters alone are written the later the more pods there are; the controller looks again then.
func TestCountersAreWrittenLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 20)
	w.change(func(s *v1beta1.SidecarSetSpec) { s.UpdateStrategy.Type = v1beta1.SidecarSetNotUpdate }) // no condition depends on the pods
	w.look()
	for i, name := range []string{"web-3", "web-4"} {
		w.now = w.now.Add(10 * time.Second)
		unready := w.pod(name)
		unready.Status.Conditions[0].Status = corev1.ConditionFalse
		ready := w.pod(name)
		w.updated(unready)
		w.reconcile()
		if got := w.set().Status.ReadyPods; got != 19 {
			t.Fatalf("%d: %d are ready after a long time without a write", i, got)
		}
		w.now = w.now.Add(time.Second)
		w.updated(ready)
		if again, got := w.reconcile(), w.set().Status.ReadyPods; got != 19 || again != time.Second {
			t.Fatalf("%d: %d are ready a second later, looks again in %s", i, got, again)
		}
		w.now = w.now.Add(time.Second)
		if w.reconcile(); w.set().Status.ReadyPods != 20 {
			t.Errorf("%d: the counter is not written 2 s later", i)
		}
	}
}

// The cache may show the SidecarSet as it was before the last write of its status.
func TestConflictOfTheStatusIsTriedAgainSoon(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	tries := 0
	w.r.client = interceptor.NewClient(w.r.client.(client.WithWatch), interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, subresource string, object client.Object, options ...client.SubResourceUpdateOption) error {
			if tries++; tries == 1 {
				return apierrors.NewConflict(schema.GroupResource{Resource: "sidecarsets"}, "logs", errors.New("written meanwhile"))
			}
			return c.SubResource(subresource).Update(ctx, object, options...)
		},
	})
	if again := w.reconcile(); again != 500*time.Millisecond || len(w.said()) != 0 {
		t.Errorf("looks again in %s", again)
	}
	if w.reconcile(); w.set().Status.MatchedPods != 1 || tries != 2 {
		t.Errorf("%+v after %d tries", w.set().Status, tries)
	}
}

func TestSidecarSetThatCannotBeReadIsNotForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.r.client = failing(w.Client)
	if _, err := w.r.Reconcile(t.Context(), request("logs")); err == nil {
		t.Error("a SidecarSet that cannot be read is taken for one that is gone")
	}
}

package inpod

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/engine"
	"github.com/refit-project/refit/internal/hook"
	"github.com/refit-project/refit/internal/identity"
)

func TestStop(t *testing.T) {
	t.Parallel()
	instance, err := identity.ParseContainerID(id(1))
	if err != nil {
		t.Fatal(err)
	}
	sleeps := &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 4}}
	command := &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"drain"}}}
	for name, tt := range map[string]struct {
		change  func(*world)
		order   crr.Stop
		cancel  time.Duration // after which the sidecar ends
		signals string
		took    time.Duration
		warned  bool
		ended   error  // why the request is not carried out any more
		want    string // in the error; empty: none
	}{
		"TERM is enough":               {order: crr.Stop{Grace: 10 * time.Second}, signals: "SIGTERM 1", took: look},
		"has ended already":            {change: func(w *world) { w.alive = nil }, order: crr.Stop{Grace: 10 * time.Second}},
		"no grace":                     {order: crr.Stop{PreStop: sleeps}, signals: "SIGKILL 1", took: look},
		"the hook takes of the grace":  {change: func(w *world) { w.stubborn = true }, order: crr.Stop{Grace: 10 * time.Second, PreStop: sleeps}, signals: "SIGTERM 1 SIGKILL 1", took: 10*time.Second + look},
		"at least 2 s after the hook":  {change: func(w *world) { w.stubborn = true }, order: crr.Stop{Grace: 3 * time.Second, PreStop: sleeps}, signals: "SIGTERM 1 SIGKILL 1", took: 5*time.Second + look, warned: true},
		"a hook that cannot be run":    {order: crr.Stop{Grace: 10 * time.Second, PreStop: command}, signals: "SIGTERM 1", took: look, warned: true},
		"the sidecar ends in the hook": {order: crr.Stop{Grace: 10 * time.Second, PreStop: sleeps}, cancel: time.Second, took: time.Second, want: "context canceled"},
		"the request ends in the hook": {order: crr.Stop{Grace: 10 * time.Second, PreStop: sleeps}, took: 4 * time.Second, ended: errors.New("deleted"), want: "not stopped after its preStop hook: deleted"},
		"survives KILL":                {change: func(w *world) { w.immortal = true }, order: crr.Stop{}, signals: "SIGKILL 1", took: 10 * time.Second, want: "it is still running after KILL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				if tt.change != nil {
					tt.change(w)
				}
				warned := false
				a := &actor{
					processes: w, hooks: hook.New(hook.Config{Addresses: podStatus{}}), logger: slog.New(slog.DiscardHandler),
					warn: func(reason, _ string) { warned = reason == "FailedPreStopHook" },
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.cancel > 0 {
					time.AfterFunc(tt.cancel, cancel)
				}
				tt.order.Container, tt.order.ID = "app", instance
				began := time.Now()
				err := a.Act(ctx, engine.Action{Request: w.request, Pod: w.pod, Stop: &tt.order, Wanted: func() error { return tt.ended }}).Err
				if took := time.Since(began); took < tt.took || took > tt.took+look {
					t.Errorf("took %s, want %s", took, tt.took)
				}
				if got := strings.Join(w.signals, " "); got != tt.signals || warned != tt.warned {
					t.Errorf("signals %q, warned %v", got, warned)
				}
				if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error %v, want %q", err, tt.want)
				}
				time.Sleep(2 * time.Second) // kubelet
			})
		})
	}
}

func TestTerminatedInstanceIsReadWhole(t *testing.T) {
	t.Parallel()
	began, ended := metav1.NewTime(time.Unix(100, 0)), metav1.NewTime(time.Unix(200, 0))
	state := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: id(1), ExitCode: 3, StartedAt: began, FinishedAt: ended}}
	got, ok := instanceOf(state, id(2), 4)
	want := crr.Instance{State: identity.StateExited, StartedAt: began.Time, FinishedAt: ended.Time, ExitCode: 3, RestartCount: 4}
	want.ID, _ = identity.ParseContainerID(id(1))
	if got != want || !ok {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Only the recorded instance is taken for ended when its processes are gone: of any other the pod's status is believed.
func TestInstanceWithoutAProcessHasEnded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change   func(*world)
		stopping bool
		want     identity.State
	}{
		"recorded, no process": {change: func(w *world) { w.alive = nil }, want: identity.StateExited},
		"recorded, runs":       {change: func(*world) {}, want: identity.StateRunning},
		"being stopped":        {change: func(w *world) { w.alive = nil }, stopping: true, want: identity.StateRunning},
		"another is recorded": {change: func(w *world) {
			w.alive, w.request.Status.ContainerRecreateStates[0].ContainerID = nil, id(7)
		}, want: identity.StateRunning},
	} {
		w := newWorld()
		w.request.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{
			{Name: "app", ContainerID: id(1)}, {Name: "not in the pod", ContainerID: id(1)},
		}
		tt.change(w)
		o := &observer{own: "side", processes: w, observed: w.observed}
		observed, err := o.Containers(t.Context(), w.request, w.pod, func(identity.ContainerID) bool { return tt.stopping })
		if err != nil {
			t.Fatal(err)
		}
		got := observed.Instances["app"][0]
		if got.State != tt.want || (got.State == identity.StateExited) != (got.ExitCode == killed && !got.FinishedAt.IsZero()) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

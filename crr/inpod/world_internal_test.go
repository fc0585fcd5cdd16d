package inpod

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/engine"
	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/plugin"
	"github.com/refit-project/refit/signal"
)

// world is a pod with a kubelet that restarts containers a while after they ended, and a watch that is late.
type world struct {
	mu       sync.Mutex
	pod      *corev1.Pod
	signals  []string
	alive    map[string]bool // by container ID
	stubborn bool            // heeds KILL only
	immortal bool            // heeds nothing
	hidden   bool            // processes cannot be seen
	denied   error
	news     chan map[string]*v1beta1.ContainerRecreateRequest
	changes  chan struct{}
	request  *v1beta1.ContainerRecreateRequest
	writes   int
	ahead    time.Duration // the API server's clock
	dropsIDs bool          // the CRD is OpenKruise's
	alpha    bool          // the CRD is OpenKruise's, up to 1.9
}

func (w *world) clockOffset() time.Duration { return w.ahead }

func id(n int) string { return fmt.Sprintf("containerd://%064d", n) }

func newWorld() *world {
	now := metav1.Now()
	w := &world{alive: map[string]bool{id(1): true, id(9): true}, news: make(chan map[string]*v1beta1.ContainerRecreateRequest, 1), changes: make(chan struct{}, 1)}
	w.pod = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "games", Name: "gs-0", UID: "u"},
		Spec:       corev1.PodSpec{ShareProcessNamespace: new(true), Containers: []corev1.Container{{Name: "app", Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: 1}}}, {Name: "side"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "127.0.0.1", ContainerStatuses: []corev1.ContainerStatus{
			{Name: "app", ContainerID: id(1), Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}},
			{Name: "side", ContainerID: id(9), Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}},
		}},
	}
	w.request = &v1beta1.ContainerRecreateRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "games", Name: "r", UID: "r-1", ResourceVersion: "1", Annotations: map[string]string{v1beta1.AnnotationRestartBackoff: "skip"}},
		Spec: v1beta1.ContainerRecreateRequestSpec{PodName: "gs-0", Containers: []v1beta1.ContainerRecreateRequestContainer{
			{Name: "app", StatusContext: &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: id(1)}}}},
	}
	return w
}

// observed is what the watch has brought.
func (w *world) observed() *corev1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pod.DeepCopy()
}

func (w *world) Find(_ context.Context, sel signal.Selector) ([]signal.Process, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hidden || !w.alive[sel.Container.String()] {
		return nil, signal.ErrNotFound
	}
	return []signal.Process{{PID: 7, Container: sel.Container.String()}}, nil
}

func (w *world) Check(p signal.Process) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.denied == nil && !w.alive[p.Container] {
		return signal.ErrGone
	}
	return w.denied
}

func (w *world) Send(p signal.Process, sig syscall.Signal) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.signals = append(w.signals, signal.Name(sig)+" "+p.Container[len(p.Container)-1:])
	if w.immortal || w.stubborn && sig != syscall.SIGKILL {
		return nil
	}
	w.crash()
	return nil
}

// crash ends app's process; kubelet and the watch say so later.
func (w *world) crash() {
	status := &w.pod.Status.ContainerStatuses[0]
	ended, restarts := status.ContainerID, status.RestartCount+1
	next := id(int(restarts) + 1)
	w.alive[ended] = false
	go func() {
		time.Sleep(1500 * time.Millisecond)
		w.mu.Lock()
		defer w.mu.Unlock()
		s := &w.pod.Status.ContainerStatuses[0]
		s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ContainerID: ended, ExitCode: 143, FinishedAt: metav1.Now()}
		s.ContainerID, s.RestartCount, s.State.Running = next, restarts, &corev1.ContainerStateRunning{StartedAt: metav1.Now()}
		w.alive[next] = true
		select {
		case w.changes <- struct{}{}:
		default:
		}
	}()
}

func (w *world) KeepsConditions() bool { return !w.alpha }

func (w *world) WriteStatus(_ context.Context, request *v1beta1.ContainerRecreateRequest, status v1beta1.ContainerRecreateRequestStatus) (*v1beta1.ContainerRecreateRequest, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes++
	if w.writes == 1 {
		return nil, errors.New("conflict")
	}
	stored := request.DeepCopy()
	stored.Status = *status.DeepCopy()
	stored.ResourceVersion = fmt.Sprint(w.writes)
	for i := range stored.Status.ContainerRecreateStates {
		if w.dropsIDs || w.alpha {
			stored.Status.ContainerRecreateStates[i].ContainerID = ""
		}
	}
	w.request = stored
	return stored.DeepCopy(), nil
}

func (w *world) status() v1beta1.ContainerRecreateRequestStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	return *w.request.Status.DeepCopy()
}

// plugin is a plugin on the world's pod, which stores requests here.
func (w *world) plugin(store engine.Store) (*Plugin, *runner) {
	p := &Plugin{host: plugin.Host{
		Own: "side", Observed: w.observed, Logger: slog.New(slog.DiscardHandler), Tell: func(result.State, string, string) {},
		Changes: func() (<-chan struct{}, func()) { return w.changes, func() {} },
	}}
	return p, p.newRunner(store, w, w.clockOffset)
}

// play runs the plugin on the world for a while, and again from nothing after each restart of the sidecar.
func (w *world) play(t *testing.T, periods ...time.Duration) {
	t.Helper()
	for _, period := range periods {
		ctx, cancel := context.WithCancel(t.Context())
		p, r := w.plugin(w)
		done := make(chan error)
		go func() { done <- p.loop(ctx, r, w.news) }()
		w.mu.Lock()
		w.news <- map[string]*v1beta1.ContainerRecreateRequest{"r": w.request.DeepCopy()}
		w.mu.Unlock()
		time.Sleep(period)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func (w *world) check(t *testing.T, result, reason string, signals ...string) {
	t.Helper()
	got, why := crr.Result(w.status())
	if got != result || why != reason {
		t.Errorf("%s %s, want %s %s: %+v", got, why, result, reason, w.status())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if diff := cmp.Diff(signals, w.signals); diff != "" {
		t.Errorf("signals (-want +got):\n%s", diff)
	}
}

func TestRecreateWithoutCRI(t *testing.T) {
	t.Parallel()
	zero := int64(0)
	tests := map[string]struct {
		change         func(*world)
		periods        []time.Duration
		result, reason string
		message        string // part of the status's
		signals        []string
	}{
		"TERM, and a status that lags behind": {result: "succeeded", reason: crr.ReasonSucceeded, signals: []string{"SIGTERM 1"}},
		"KILL after the grace period": {change: func(w *world) { w.stubborn = true }, result: "succeeded", reason: crr.ReasonSucceeded,
			signals: []string{"SIGTERM 1", "SIGKILL 1"}},
		"no grace": {change: func(w *world) {
			w.request.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{TerminationGracePeriodSeconds: &zero}
		},
			result: "succeeded", reason: crr.ReasonSucceeded, signals: []string{"SIGKILL 1"}},
		"the sidecar restarts while the status lags behind": {periods: []time.Duration{800 * time.Millisecond, 20 * time.Second},
			result: "succeeded", reason: crr.ReasonSucceeded, signals: []string{"SIGTERM 1"}},
		"the sidecar restarts within the grace period": {change: func(w *world) { w.stubborn = true }, periods: []time.Duration{5 * time.Second, 60 * time.Second},
			result: "succeeded", reason: crr.ReasonSucceeded, signals: []string{"SIGTERM 1", "SIGTERM 1", "SIGKILL 1"}},
		"PID namespace is not shared": {change: func(w *world) { w.hidden, w.pod.Spec.ShareProcessNamespace = true, nil },
			periods: []time.Duration{time.Second}, result: "failed", reason: crr.ReasonNotPossibleHere},
		"cgroups are hidden": {change: func(w *world) { w.hidden = true }, periods: []time.Duration{25 * time.Second},
			result: "failed", reason: crr.ReasonNotPossibleHere, message: "hides cgroups"},
		"it crashed before its ID was recorded": {change: func(w *world) { w.crash() }, result: "succeeded", reason: crr.ReasonSucceeded},
		"it crashed, and the sidecar restarts before the status says so": {change: func(w *world) { w.crash() },
			periods: []time.Duration{500 * time.Millisecond, 10 * time.Second}, result: "succeeded", reason: crr.ReasonSucceeded},
		"not permitted":           {change: func(w *world) { w.denied = errors.New("operation not permitted") }, result: "failed", reason: crr.ReasonNotPossibleHere},
		"restartPolicy Never":     {change: func(w *world) { w.pod.Spec.RestartPolicy = corev1.RestartPolicyNever }, result: "failed", reason: crr.ReasonNotPossibleHere},
		"restartPolicy OnFailure": {change: func(w *world) { w.pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure }, result: "failed", reason: crr.ReasonNotPossibleHere},
		"restartPolicy OnFailure, killed": {change: func(w *world) {
			w.pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
			w.request.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{TerminationGracePeriodSeconds: &zero}
		}, result: "succeeded", reason: crr.ReasonSucceeded, signals: []string{"SIGKILL 1"}},
		"a container's own policy Never": {change: func(w *world) {
			w.pod.Spec.Containers[0].RestartPolicy = new(corev1.ContainerRestartPolicyNever)
		}, result: "failed", reason: crr.ReasonNotPossibleHere},
		"ourselves": {change: func(w *world) {
			w.request.Spec.Containers[0].Name, w.request.Spec.Containers[0].StatusContext.ContainerID = "side", id(9)
		}, result: "failed", reason: crr.ReasonNotPossibleHere, message: "the sidecar does not stop itself"},
		"restartPolicy Never and a rule for every exit": {change: func(w *world) {
			app := &w.pod.Spec.Containers[0]
			app.RestartPolicy = new(corev1.ContainerRestartPolicyNever)
			app.RestartPolicyRules = []corev1.ContainerRestartRule{{
				Action: corev1.ContainerRestartRuleActionRestart, ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpNotIn},
			}}
		}, result: "succeeded", reason: crr.ReasonSucceeded, signals: []string{"SIGTERM 1"}},
		"the clock of the node is ahead": {change: func(w *world) {
			w.ahead = -10 * time.Minute
			w.request.CreationTimestamp = metav1.NewTime(time.Now().Add(w.ahead))
			w.request.Spec.ActiveDeadlineSeconds = new(int64(60))
		}, result: "succeeded", reason: crr.ReasonSucceeded, signals: []string{"SIGTERM 1"}},
		"the deadline is within the preStop hook": {change: func(w *world) {
			w.request.CreationTimestamp = metav1.Now()
			w.request.Spec.ActiveDeadlineSeconds = new(int64(5))
			w.pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 10}}}
		}, result: "failed", reason: crr.ReasonDeadlineExceeded},
		"the other container is restarted where failures are ignored": {change: func(w *world) {
			w.request.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{FailurePolicy: v1beta1.FailurePolicyIgnore}
			w.request.Spec.Containers = append([]v1beta1.ContainerRecreateRequestContainer{
				{Name: "side", StatusContext: &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: id(9)}}}, w.request.Spec.Containers...)
		}, result: "failed", reason: crr.ReasonContainerFailed, signals: []string{"SIGTERM 1"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				if tt.change != nil {
					tt.change(w)
				}
				periods := tt.periods
				if periods == nil {
					periods = []time.Duration{2 * time.Minute}
				}
				w.play(t, periods...)
				w.check(t, tt.result, tt.reason, tt.signals...)
				if message := w.status().Message; tt.result == "failed" && message == "" || !strings.Contains(message, tt.message) {
					t.Errorf("message %q, want %q", message, tt.message)
				}
			})
		})
	}
}

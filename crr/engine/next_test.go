package engine

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
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/hook"
	"github.com/refit-project/refit/internal/identity"
)

// store is an API server with many requests: the names of what was written, and errors of writes by name.
type store struct {
	written    []string
	errs       map[string]error
	conditions bool
}

var errDeleted = errors.New("deleted")

func (s *store) KeepsConditions() bool { return s.conditions }

func (s *store) WriteStatus(_ context.Context, request *crr.Request, status crr.Status) (*crr.Request, error) {
	if err := s.errs[request.Name]; err != nil {
		return nil, err
	}
	s.written = append(s.written, request.Name)
	stored := request.DeepCopy()
	stored.Status = status
	return stored, nil
}

// engineOn is an engine on this store, for a pod and containers of a world.
func engineOn(w *world, s *store, signalsOnly bool) (*Engine, *process) {
	p := &process{world: w, changed: make(chan struct{}, 1)}
	return New(Config{
		Observer: p, Store: s, Actor: p, Deleted: func(err error) bool { return errors.Is(err, errDeleted) }, ClockOffset: func() time.Duration { return 0 },
		Options: crr.Options{SignalsOnly: signalsOnly}, MaxConcurrent: 1, Logger: slog.New(slog.DiscardHandler), Changed: func(identity.Pod) {},
	}), p
}

func (w *world) two() (first, second *crr.Request) {
	first, second = w.request.DeepCopy(), w.request.DeepCopy()
	first.Name, first.UID, second.Name, second.UID = "first", "1", "second", "2"
	second.CreationTimestamp = metav1.NewTime(time.Now().Add(time.Second))
	second.Spec.ActiveDeadlineSeconds = new(int64(60))
	return first, second
}

func TestSecondRequestOfThePodWaits(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	for name, tt := range map[string]struct {
		failing map[string]error
		left    int // requests that are known afterwards
		written string
		err     bool
	}{
		"both are written":             {left: 2, written: "first second"},
		"the second cannot be written": {failing: map[string]error{"second": refused}, left: 2, written: "first", err: true},
		"the second is deleted":        {failing: map[string]error{"second": errDeleted}, left: 1, written: "first"},
		"the first is deleted":         {failing: map[string]error{"first": errDeleted}, left: 1, written: "second"},
		"the first cannot be written":  {failing: map[string]error{"first": refused}, left: 2, written: "second", err: true},
	} {
		for _, signalsOnly := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w, s := newWorld(), &store{errs: tt.failing, conditions: true}
				e, _ := engineOn(w, s, signalsOnly)
				first, second := w.two()
				e.Put(key, first)
				e.Put(key, second)
				again, err := e.Next(t.Context(), key)
				if got := strings.Join(s.written, " "); (err != nil) != tt.err || got != tt.written || len(e.ofPod(key)) != tt.left {
					t.Errorf("%s: %v, wrote %q, %d requests are known", name, err, got, len(e.ofPod(key)))
				}
				if stopping := e.Stopping(instanceID(1)); stopping != (tt.failing["first"] == nil) {
					t.Errorf("%s: the first is carried out: %t", name, stopping)
				}
				if errors.Is(tt.failing["first"], errDeleted) && again.After(time.Now()) {
					t.Errorf("%s: the second is taken at %s, want now", name, again.Time)
				}
				if tt.failing == nil {
					waits := e.get("2").Status
					if waits.Phase != v1beta1.ContainerRecreateRequestPending || !strings.Contains(waits.Message, "first") {
						t.Errorf("the second is %s: %s", waits.Phase, waits.Message)
					}
					if want := second.CreationTimestamp.Add(time.Minute); !again.Equal(want) {
						t.Errorf("looks again at %s, want the second's deadline %s", again.Time, want)
					}
				}
				e.Wait()
				time.Sleep(10 * time.Second) // kubelet
			})
		}
	}
}

func TestWritesOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	request := requestAt("1")
	request.Status.Phase = v1beta1.ContainerRecreateRequestRecreating
	changed, conditions := request.Status, request.Status
	changed.Message = "m"
	conditions.Conditions = []metav1.Condition{{Type: "Accepted"}}
	completed := request.DeepCopy()
	completed.Status.Phase = v1beta1.ContainerRecreateRequestCompleted
	for name, tt := range map[string]struct {
		request *crr.Request
		status  crr.Status
		keeps   bool
		writes  int
	}{
		"the same":                       {request, request.Status, true, 0},
		"another message":                {request, changed, true, 1},
		"conditions":                     {request, conditions, true, 1},
		"conditions that are not stored": {request, conditions, false, 0},
		"a completed request":            {completed, changed, true, 0},
	} {
		s := &store{conditions: tt.keeps}
		e, _ := engineOn(newWorld(), s, true)
		if _, err := e.write(t.Context(), tt.request, tt.status); err != nil || len(s.written) != tt.writes {
			t.Errorf("%s: %d writes, %v", name, len(s.written), err)
		}
	}
}

// The containers of a pod are looked at until the next of its requests is to end.
func TestNextDeadlineOfThePodsRequests(t *testing.T) {
	t.Parallel()
	e, _ := engineOn(newWorld(), &store{}, false)
	e.ClockOffset = func() time.Duration { return time.Hour } // the API server's clock is ahead
	now := time.Now()
	request := func(seconds int64) *crr.Request {
		r := &crr.Request{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(time.Hour)), UID: types.UID("u")}}
		if seconds != 0 {
			r.Spec.ActiveDeadlineSeconds = &seconds
		}
		return r
	}
	for name, tt := range map[string]struct {
		queue []*crr.Request
		want  time.Duration // from now; zero: there is none
	}{
		"none has a deadline":           {queue: []*crr.Request{request(0), request(0)}},
		"the first":                     {queue: []*crr.Request{request(60), request(90)}, want: time.Minute},
		"one that waits":                {queue: []*crr.Request{request(60), request(30)}, want: 30 * time.Second},
		"only one that waits":           {queue: []*crr.Request{request(0), request(30)}, want: 30 * time.Second},
		"one that waits is over":        {queue: []*crr.Request{request(60), request(-30)}, want: time.Minute},
		"the first deadline has passed": {queue: []*crr.Request{request(-5), request(30)}, want: -5 * time.Second},
	} {
		got := e.nextDeadline(tt.queue)
		if tt.want == 0 && !got.IsZero() || tt.want != 0 && got.Sub(now).Round(time.Second) != tt.want {
			t.Errorf("%s: %s, want in %s", name, got.Sub(now), tt.want)
		}
	}
}

// A stop belongs to the instance and has its own grace period: the next request waits for it and does not stop it again.
func TestStopOfAnEarlierRequestCountsForTheNext(t *testing.T) {
	t.Parallel()
	for _, signalsOnly := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			e, p := engineOn(w, &store{conditions: true}, signalsOnly)
			first, second := w.two()
			for _, request := range []*crr.Request{first, second} {
				e.Put(key, request)
				if _, err := e.Next(t.Context(), key); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				e.Remove(first)
			}
			w.mu.Lock()
			if state := e.get("2").Status.ContainerRecreateStates; p.calls < 4 || len(w.stopped) != 1 || len(state) != 1 || state[0].StopBegan != nil {
				t.Errorf("signals only %t: stopped %q, the second request has %+v", signalsOnly, w.stopped, state)
			}
			w.mu.Unlock()
			e.Wait()
			time.Sleep(10 * time.Second) // kubelet
		})
	}
}

// ended is a Reporter that notes how long requests took.
type ended struct {
	noReports
	took []time.Duration
}

func (e *ended) Ended(_ *crr.Request, _ crr.Status, took time.Duration) {
	e.took = append(e.took, took)
}

// The creation of a request is by the API server's clock.
func TestDurationOfARequestIsByOneClock(t *testing.T) {
	t.Parallel()
	e, _ := engineOn(newWorld(), &store{}, false)
	reports, now := &ended{}, time.Now()
	e.ClockOffset, e.Reporter = func() time.Duration { return time.Hour }, reports // the API server's clock is ahead
	request := requestAt("1")
	request.CreationTimestamp = metav1.NewTime(now.Add(time.Hour - 5*time.Second))
	e.end(key, request, crr.Status{}, now)
	if len(reports.took) != 1 || reports.took[0] != 5*time.Second {
		t.Errorf("took %v, want 5s", reports.took)
	}
}

// The container goes on after a hook whose request has ended meanwhile, and may be taken into service again: its next
// stop runs the hook again. A hook that is cut off by the end of the process has not failed.
func TestPreStopHookOfAStopThatIsGivenUp(t *testing.T) {
	t.Parallel()
	sleeps := &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 4}}
	for name, tt := range map[string]struct {
		wanted error
		cancel time.Duration
		took   time.Duration // of the hook of the next stop
	}{
		"the request ends":     {wanted: errDeleted, took: 4 * time.Second},
		"the process ends":     {cancel: time.Second, took: 4 * time.Second},
		"the stop takes place": {took: 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			hooks := hook.New(hook.Config{})
			run := func(ctx context.Context, wanted error) (time.Duration, Result) {
				began := time.Now()
				action := Action{Pod: &corev1.Pod{}, Stop: &crr.Stop{Container: "app", ID: instanceID(1), Grace: 10 * time.Second, PreStop: sleeps}, Wanted: func() error { return wanted }}
				_, result := action.PreStop(ctx, hooks, began, func(err error) { t.Errorf("%s: the hook failed: %v", name, err) })
				return time.Since(began), result
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.cancel > 0 {
				time.AfterFunc(tt.cancel, cancel)
			}
			if _, result := run(ctx, tt.wanted); (result.Err != nil) != (tt.wanted != nil || tt.cancel > 0) || result.Err != nil && !result.Transient {
				t.Errorf("%s: %+v", name, result)
			}
			if took, _ := run(t.Context(), nil); took != tt.took {
				t.Errorf("%s: the hook of the next stop took %s, want %s", name, took, tt.took)
			}
		})
	}
}

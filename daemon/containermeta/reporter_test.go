package containermeta_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/daemon/containermeta"
	"github.com/refit-project/refit/hook"
	"github.com/refit-project/refit/inplace/facts"
	"github.com/refit-project/refit/kubelet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a pod with containers, a runtime and a kubelet that starts what was stopped.
type world struct {
	t      *testing.T
	source *cachetesting.FakeControllerSource

	mu       sync.Mutex
	pod      *corev1.Pod
	hash     map[string]string            // by runtime's container ID
	image    map[string]string            // likewise
	env      map[string]map[string]string // likewise; nil: not told
	writes   []string
	stopped  []string
	begun    []time.Time // of stops
	hooks    int
	restarts map[string]int
	ready    bool // new instances are ready at once
}

func container(name, priority string) corev1.Container {
	c := corev1.Container{Name: name, Image: "game:v1", Env: []corev1.EnvVar{{Name: "MODE", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['mode']"},
	}}}}
	if priority != "" {
		c.Env = append(c.Env, corev1.EnvVar{Name: v1beta1.EnvContainerBarrier, ValueFrom: &corev1.EnvVarSource{
			ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: "p_" + priority},
		}})
	}
	return c
}

func inWorld(t *testing.T, containers []corev1.Container, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			t: t, source: cachetesting.NewFakeControllerSource(), hash: map[string]string{}, image: map[string]string{},
			env: map[string]map[string]string{}, restarts: map[string]int{}, ready: true,
			pod: &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: "u", Annotations: map[string]string{"mode": "one"}},
				Spec:       corev1.PodSpec{Containers: containers, TerminationGracePeriodSeconds: new(int64(5))},
				Status:     corev1.PodStatus{ContainerStatuses: make([]corev1.ContainerStatus, len(containers))},
			},
		}
		for i := range containers {
			w.start(i)
		}
		w.source.Add(w.pod)
		pods := cache.NewSharedIndexInformer(w.source, &corev1.Pod{}, 0, cache.Indexers{})
		reporter, err := containermeta.New(containermeta.Config{
			RuntimeName: "containerd", Runtime: w, Pods: pods, Wants: func(*corev1.Pod) bool { return true }, API: w, Hooks: w, Events: w,
			Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { pods.RunWithContext(ctx) })
		running.Go(func() {
			if err := reporter.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		defer func() { cancel(); running.Wait(); w.source.Shutdown() }()
		w.pass(5 * time.Second)
		test(w)
	})
}

// start makes a new instance of a container from the pod as it is. mu is held, or nothing runs yet.
func (w *world) start(i int) {
	spec := &w.pod.Spec.Containers[i]
	id := fmt.Sprintf("%s-%d", spec.Name, w.restarts[spec.Name])
	w.hash[id], w.image[id] = kubelet.ContainerHash(spec), spec.Image
	w.env[id] = map[string]string{"PATH": "/bin", "MODE": w.pod.Annotations["mode"]}
	w.pod.Status.ContainerStatuses[i] = corev1.ContainerStatus{
		Name: spec.Name, ContainerID: "containerd://" + id, RestartCount: int32(w.restarts[spec.Name]), Ready: w.ready,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}
	w.restarts[spec.Name]++
}

func (w *world) pass(d time.Duration) { time.Sleep(d); synctest.Wait() }

func (w *world) change(f func(pod *corev1.Pod)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pod = w.pod.DeepCopy()
	f(w.pod)
	w.source.Modify(w.pod)
}

func update(pod *corev1.Pod) {
	pod.Annotations["mode"] = "two"
	pod.Status.Conditions = []corev1.PodCondition{{Type: v1beta1.ReadinessGateInPlaceUpdateReady, Status: corev1.ConditionFalse}}
}

// reported is what the annotation says.
func (w *world) reported() v1beta1.RuntimeContainerMetaSet {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	var set v1beta1.RuntimeContainerMetaSet
	if err := json.Unmarshal([]byte(w.pod.Annotations[v1beta1.AnnotationRuntimeContainersMeta]), &set); err != nil {
		w.t.Fatal(err)
	}
	return set
}

func (w *world) ContainerStatus(_ context.Context, id string) (cri.ContainerStatus, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return cri.ContainerStatus{Container: cri.Container{ID: id, Image: w.image[id]}, Hash: w.hash[id]}, nil
}

func (w *world) Environment(_ context.Context, id string) (map[string]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.env[id] == nil {
		return nil, cri.ErrUnsupported
	}
	return w.env[id], nil
}

func (w *world) StopContainer(_ context.Context, id string, grace time.Duration) error {
	w.mu.Lock()
	w.begun = append(w.begun, time.Now())
	w.mu.Unlock()
	time.Sleep(grace)
	w.mu.Lock()
	w.stopped = append(w.stopped, id)
	w.mu.Unlock()
	time.Sleep(time.Second) // kubelet's relist
	w.change(func(pod *corev1.Pod) {
		for i, s := range pod.Status.ContainerStatuses {
			if s.ContainerID == "containerd://"+id {
				w.start(i)
			}
		}
	})
	return nil
}

func (w *world) Annotate(_ context.Context, _ *corev1.Pod, key, value string) error {
	w.change(func(pod *corev1.Pod) { pod.Annotations[key] = value; w.writes = append(w.writes, value) })
	return nil
}

func (w *world) Run(context.Context, hook.Call) error { w.hooks++; return nil }

func (w *world) Event(corev1.ObjectReference, string, string, string) {}

// kubelet gets the change of an annotation when we do, or a little later: a container that is stopped before that starts
// with the old environment and has to be stopped again. The readiness gate is closed before, which must not count.
func TestStopWaitsUntilKubeletHasTheLastChange(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{0, 500 * time.Millisecond, 990 * time.Millisecond, 1500 * time.Millisecond} {
		inWorld(t, []corev1.Container{container("game", "")}, func(w *world) {
			w.change(func(pod *corev1.Pod) {
				pod.Status.Conditions = []corev1.PodCondition{{Type: v1beta1.ReadinessGateInPlaceUpdateReady, Status: corev1.ConditionFalse}}
			})
			w.pass(after)
			w.change(func(pod *corev1.Pod) { pod.Annotations["mode"] = "two" })
			changed := time.Now()
			w.pass(time.Minute)
			if len(w.begun) != 1 {
				t.Fatalf("%d stops, want 1", len(w.begun))
			}
			if waited := w.begun[0].Sub(changed); waited < 2*time.Second || waited > 3*time.Second {
				t.Errorf("gate closed %s before the annotation changed: stopped after %s, want 2 s", after, waited)
			}
		})
	}
}

func TestReportIsWrittenOnceAndOnChange(t *testing.T) {
	t.Parallel()
	inWorld(t, []corev1.Container{container("game", ""), {Name: "log", Image: "log:v1"}}, func(w *world) {
		set := w.reported()
		game := set.Containers[0]
		if len(set.Containers) != 2 || game.Name != "game" || game.ContainerID != "containerd://game-0" || game.RestartCount != 0 ||
			fmt.Sprintf("%x", game.Hashes.PlainHash) != kubelet.ContainerHash(&w.pod.Spec.Containers[0]) ||
			game.Hashes.ExtractedEnvFromMetadataHash != facts.ExpectedEnvHash(&w.pod.Spec.Containers[0], w.pod) {
			t.Errorf("%+v", set)
		}
		for range 10 {
			w.change(func(pod *corev1.Pod) { pod.Status.PodIP += "1" })
			w.pass(2 * time.Second)
		}
		if len(w.writes) != 1 {
			t.Errorf("%d writes", len(w.writes))
		}
		w.change(func(*corev1.Pod) { w.start(0) })
		w.pass(5 * time.Second)
		if got := w.reported().Containers[0]; got.ContainerID != "containerd://game-1" || got.RestartCount != 1 || len(w.writes) != 2 {
			t.Errorf("%+v after %d writes", got, len(w.writes))
		}
	})
}

func TestChangedEnvironmentRestartsTheContainerOnceDuringAnUpdate(t *testing.T) {
	t.Parallel()
	inWorld(t, []corev1.Container{container("game", ""), {Name: "log", Image: "log:v1"}}, func(w *world) {
		w.change(func(pod *corev1.Pod) { pod.Annotations["mode"] = "two" })
		w.pass(time.Minute)
		if len(w.stopped) != 0 {
			t.Fatalf("an edited annotation stopped %q", w.stopped)
		}
		w.change(update)
		w.pass(time.Minute)
		if !slices.Equal(w.stopped, []string{"game-0"}) {
			t.Errorf("stopped %q", w.stopped)
		}
		if got := w.reported().Containers[0].Hashes.ExtractedEnvFromMetadataHash; got != facts.ExpectedEnvHash(&w.pod.Spec.Containers[0], w.pod) {
			t.Errorf("hash %d is not of the new environment", got)
		}
	})
}

// kubelet restarts a container whose image has changed, and the new one has the new environment too.
func TestImageAndEnvironmentTogetherAreOneStopByKubelet(t *testing.T) {
	t.Parallel()
	inWorld(t, []corev1.Container{container("game", "")}, func(w *world) {
		w.change(func(pod *corev1.Pod) { update(pod); pod.Spec.Containers[0].Image = "game:v2" })
		w.pass(30 * time.Second) // the image is pulled meanwhile
		w.change(func(*corev1.Pod) { w.start(0) })
		w.pass(time.Minute)
		if len(w.stopped) != 0 || w.reported().Containers[0].ContainerID != "containerd://game-1" {
			t.Errorf("stopped %q, reported %+v", w.stopped, w.reported())
		}
	})
}

func TestRestartsFollowLaunchPriority(t *testing.T) {
	t.Parallel()
	inWorld(t, []corev1.Container{container("low", "1"), container("high", "10"), container("none", "")}, func(w *world) {
		w.ready = false
		w.change(update)
		w.pass(time.Minute)
		slices.Sort(w.stopped) // those of one batch are stopped at once
		if !slices.Equal(w.stopped, []string{"high-0", "none-0"}) {
			t.Errorf("stopped %q before the first is ready", w.stopped)
		}
		w.change(func(pod *corev1.Pod) { pod.Status.ContainerStatuses[1].Ready = true; w.ready = true })
		w.pass(time.Minute)
		if !slices.Equal(w.stopped, []string{"high-0", "none-0", "low-0"}) {
			t.Errorf("stopped %q", w.stopped)
		}
	})
}

func TestRuntimeThatDoesNotTellTheEnvironmentStopsNothing(t *testing.T) {
	t.Parallel()
	inWorld(t, []corev1.Container{container("game", "")}, func(w *world) {
		w.change(func(*corev1.Pod) { w.start(0); w.env["game-1"] = nil })
		w.pass(5 * time.Second)
		w.change(update)
		w.pass(time.Minute)
		if len(w.stopped) != 0 || w.reported().Containers[0].Hashes.ExtractedEnvFromMetadataHash != 0 {
			t.Errorf("stopped %q, reported %+v", w.stopped, w.reported())
		}
	})
}

func TestPreStopHookRunsBeforeTheStop(t *testing.T) {
	t.Parallel()
	game := container("game", "")
	game.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}}
	inWorld(t, []corev1.Container{game}, func(w *world) {
		w.change(update)
		w.pass(time.Minute)
		if w.hooks != 1 || len(w.stopped) != 1 {
			t.Errorf("%d hooks, stopped %q", w.hooks, w.stopped)
		}
	})
}

package node_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/cri"
	probenode "github.com/refit-project/refit/probe/node"
)

func TestMain(m *testing.M) {
	if os.Getenv(serverVariable) != "" {
		serveHTTP()
		return
	}
	goleak.VerifyTestMain(m)
}

// world is a node with its pods, its runtime and the API server, and a Manager at work on it.
type world struct {
	t        testing.TB
	manager  *probenode.Manager
	registry *prometheus.Registry
	end      func()

	podSource    *cachetesting.FakeControllerSource
	objectSource *cachetesting.FakeControllerSource

	mu      sync.Mutex
	pods    map[string]*corev1.Pod
	object  *v1alpha1.NodePodProbe
	writes  []v1alpha1.NodePodProbeStatus
	attempt int
	fail    error
	hang    bool   // writes end with their context
	pruned  bool   // the CRD is OpenKruise's
	during  func() // happens while a status is written
	gone    bool   // what during has deleted stays so
	events  []string
	execs   []string // "container command"
	answer  func(ctx context.Context, container, command string) (cri.ExecResult, error)
}

const node = "node-1"

// inWorld runs a test in a bubble of its own time.
func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		test(w)
	})
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{
		t: t, pods: map[string]*corev1.Pod{}, registry: prometheus.NewRegistry(), end: func() {},
		podSource: cachetesting.NewFakeControllerSource(), objectSource: cachetesting.NewFakeControllerSource(),
		answer: func(context.Context, string, string) (cri.ExecResult, error) {
			return cri.ExecResult{Stdout: "idle"}, nil
		},
		object: &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: node, UID: "npp", Generation: 1}},
	}
	w.objectSource.Add(w.object)
	return w
}

func (w *world) close() {
	w.end()
	w.podSource.Shutdown()
	w.objectSource.Shutdown()
}

// run starts a daemon, as if after a kill -9 if there was one before.
func (w *world) run() {
	w.end()
	ctx, cancel := context.WithCancel(context.Background())
	w.registry = prometheus.NewRegistry()
	pods := cache.NewSharedIndexInformer(w.podSource, &corev1.Pod{}, 0, cache.Indexers{})
	manager, err := probenode.New(probenode.Config{
		Node: node, CPUs: 2, ExecShare: 100, Pods: pods, API: w, Runtime: w, Events: w, Registry: w.registry, Logger: slog.New(slog.DiscardHandler),
		NodePodProbe: cache.NewSharedIndexInformer(w.objectSource, &v1alpha1.NodePodProbe{}, 0, cache.Indexers{}),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.manager = manager
	var running sync.WaitGroup
	running.Go(func() { pods.RunWithContext(ctx) })
	running.Go(func() {
		if err := manager.Run(ctx); err != nil {
			w.t.Error(err)
		}
	})
	w.end = func() { cancel(); running.Wait(); w.end = func() {} }
}

// putPod adds or changes a pod whose containers are all as instance says; 0: never started, negative: ended.
func (w *world) putPod(name string, instance int, containers ...string) {
	w.putPodWith(name, instance, func(*corev1.Pod) {}, containers...)
}

func (w *world) putPodWith(name string, instance int, change func(*corev1.Pod), containers ...string) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)}}
	pod.Spec.NodeName = node
	pod.Status.PodIP = "192.0.2.7"
	for _, c := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: c})
		status := corev1.ContainerStatus{Name: c}
		if instance != 0 {
			status.ContainerID = "containerd://" + instanceID(name, c, max(instance, -instance))
		}
		if instance > 0 {
			status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Now().Truncate(time.Second))}
		}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
	}
	change(pod)
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, exists := w.pods[name]; exists {
		w.podSource.Modify(pod)
	} else {
		w.podSource.Add(pod)
	}
	w.pods[name] = pod
}

func instanceID(pod, container string, n int) string {
	return fmt.Sprintf("%s-%s-%d", pod, container, n)
}

func (w *world) deletePod(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.podSource.Delete(w.pods[name].DeepCopy())
	delete(w.pods, name)
}

// containerStopped is the runtime's event for an instance of the container game.
func (w *world) containerStopped(pod string, instance int) {
	w.manager.ContainerEvent(cri.Event{
		Type: cri.EventStopped, PodNamespace: "shop", PodName: pod, ContainerID: instanceID(pod, "game", instance),
	})
}

// want replaces the spec.
func (w *world) want(entries ...v1alpha1.PodProbe) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.object = w.object.DeepCopy()
	w.object.Spec.PodProbes = entries
	w.object.Generation++
	w.objectSource.Modify(w.object)
}

// deleteObject deletes the NodePodProbe; want makes another one.
func (w *world) deleteObject() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.objectSource.Delete(w.object.DeepCopy())
	w.object = w.object.DeepCopy()
	w.object.UID += "-again"
	w.object.Status = v1alpha1.NodePodProbeStatus{}
}

func entry(pod string, probes ...v1alpha1.ContainerProbe) v1alpha1.PodProbe {
	return v1alpha1.PodProbe{Namespace: "shop", Name: pod, UID: "uid-" + pod, IP: "192.0.2.7", Probes: probes}
}

func execProbe(name, container, command string) v1alpha1.ContainerProbe {
	p := v1alpha1.ContainerProbe{Name: name, ContainerName: container}
	p.Probe.Exec = &corev1.ExecAction{Command: []string{command}}
	return p
}

// WriteStatus is the API server's.
func (w *world) WriteStatus(ctx context.Context, object *v1alpha1.NodePodProbe, status v1alpha1.NodePodProbeStatus) (*v1alpha1.NodePodProbe, error) {
	w.mu.Lock()
	hang := w.hang
	w.mu.Unlock()
	if hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempt++
	if w.fail != nil {
		return nil, w.fail
	}
	if object.UID != w.object.UID {
		return nil, errors.New("another object")
	}
	w.object = w.object.DeepCopy()
	if w.during != nil {
		w.during()
	}
	w.object.Status = *status.DeepCopy()
	if w.pruned {
		w.object.Status.Conditions = nil
	}
	if !w.gone {
		w.objectSource.Modify(w.object)
	}
	w.writes = append(w.writes, w.object.Status)
	return w.object.DeepCopy(), nil
}

// ExecSync is the runtime's.
func (w *world) ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (cri.ExecResult, error) {
	w.mu.Lock()
	w.execs = append(w.execs, id+" "+strings.Join(command, " "))
	answer := w.answer
	w.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, timeout+5*time.Second, cri.ErrDeadline)
	defer cancel()
	return answer(ctx, id, strings.Join(command, " "))
}

func (w *world) answers(answer func(container, command string) (cri.ExecResult, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = func(_ context.Context, container, command string) (cri.ExecResult, error) {
		return answer(container, command)
	}
}

// says has all commands end with that.
func (w *world) says(code int32, text string) {
	w.answers(func(string, string) (cri.ExecResult, error) { return cri.ExecResult{ExitCode: code, Stdout: text}, nil })
}

func (w *world) Event(about corev1.ObjectReference, kind, reason, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, fmt.Sprintf("%s %s %s %s: %s", kind, about.Kind, about.Name, reason, message))
}

// shows are the states in the API as "pod probe State message".
func (w *world) shows() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, p := range w.object.Status.PodProbeStatuses {
		for _, s := range p.ProbeStates {
			all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", p.Name, s.Name, s.State, s.Message)))
		}
	}
	return all
}

// pass lets time go by and everything settle.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) expect(want ...string) {
	w.t.Helper()
	if got := w.shows(); !slices.Equal(got, want) {
		w.t.Errorf("at %s the status says %q, want %q", time.Now().Format("04:05.000"), got, want)
	}
}

func (w *world) count() (writes, execs, events int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.writes), len(w.execs), len(w.events)
}

func (w *world) hasEvent(words ...string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.events, func(e string) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(e, word) })
	})
}

package node

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/test/kit/fakecri"
	"github.com/refit-project/refit/test/kit/poll"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node is a node with a fake runtime, a fake kubelet and a fake API server, and a Worker at work on it.
type node struct {
	t             *testing.T
	runtime       *fakecri.Runtime
	client        *cri.Client
	requestSource *cachetesting.FakeControllerSource
	podSource     *cachetesting.FakeControllerSource
	stop          func()

	mu       sync.Mutex
	worker   *Worker
	requests map[string]*crr.Request // the API server's, by name
	pods     map[string]*corev1.Pod  // likewise
	writes   []crr.Status
	events   []string
	touches  int
	fail     func(*crr.Request) error // what a write of the request ends with, if not nil
	kruise   bool                     // the CRD is OpenKruise's

	log               io.Writer // of the worker
	maxConcurrent     int
	refuseAnnotations bool
	alpha             bool // v1alpha1 is all that is served, as with OpenKruise up to 1.9
	slowRequests      bool // a request that is followed before an older one of its pod delays the other one
	registry          *prometheus.Registry
	tracer            trace.Tracer
}

func newNode(t *testing.T, change ...func(*node)) *node {
	n := &node{
		t: t, log: io.Discard, maxConcurrent: 256, tracer: noop.Tracer{}, runtime: fakecri.Start(t), requests: map[string]*crr.Request{}, pods: map[string]*corev1.Pod{},
		requestSource: cachetesting.NewFakeControllerSource(), podSource: cachetesting.NewFakeControllerSource(),
	}
	n.runtime.ActAsKubelet(fakecri.Kubelet{
		Delay:   func(int) time.Duration { return 50 * time.Millisecond },
		OnStart: n.started,
	})
	client, err := cri.New(cri.Config{Endpoint: n.runtime.Endpoint()})
	if err != nil {
		t.Fatal(err)
	}
	n.client = client
	for _, change := range change {
		change(n)
	}
	n.startDaemon()
	t.Cleanup(func() {
		n.stop()
		n.requestSource.Shutdown()
		n.podSource.Shutdown()
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// startDaemon runs a Worker until n.stop, which is as abrupt as kill -9 to all but its goroutines.
func (n *node) startDaemon() {
	ctx, cancel := context.WithCancel(context.Background())
	pods := cache.NewSharedIndexInformer(n.podSource, &corev1.Pod{}, 0, cache.Indexers{})
	synced := make(chan struct{})
	n.registry = prometheus.NewRegistry()
	requests := cache.NewSharedIndexInformer(n.requestSource, &crr.Request{}, 0, cache.Indexers{})
	if n.slowRequests {
		requests = &slowInformer{requests}
	}
	w, err := New(Config{
		Node: "node-1", RuntimeName: fakecri.Name, Runtime: n.client, Hooks: NewHooks(n.client),
		Requests: requests, RequestAPI: n, Pods: pods, PodAPI: podAPI{n}, ClockOffset: func() time.Duration { return 0 }, MaxConcurrent: n.maxConcurrent,
		Synced: func() { close(synced) }, Events: n, Registry: n.registry, Tracer: n.tracer, Logger: slog.New(slog.NewTextHandler(n.log, nil)),
	})
	if err != nil {
		n.t.Fatal(err)
	}
	n.mu.Lock()
	n.worker = w
	n.mu.Unlock()
	var running sync.WaitGroup
	running.Go(func() { pods.RunWithContext(ctx) })
	running.Go(func() { _ = n.client.Events(ctx, w.ContainerEvent) })
	running.Go(func() {
		if err := w.Run(ctx); err != nil {
			n.t.Error(err)
		}
	})
	n.stop = func() { cancel(); running.Wait() }
	<-synced
}

// pod runs a pod with these containers.
func (n *node) pod(name string, containers ...fakecri.Container) *corev1.Pod {
	pod := n.newPod(name, containers...)
	n.putPod(pod)
	return pod
}

// newPod runs a pod of which the API server does not know yet.
func (n *node) newPod(name string, containers ...fakecri.Container) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1"}}
	pod.Spec.NodeName = "node-1"
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	pod.Status.Phase = corev1.PodRunning
	sandbox := n.runtime.RunPod(identity.Pod{Namespace: "shop", Name: name, UID: string(pod.UID)}, "127.0.0.1")
	for _, c := range containers {
		id := n.runtime.RunContainer(sandbox, c)
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: c.Name})
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, ContainerID: fakecri.Name + "://" + id, Ready: true, RestartCount: int32(c.RestartCount),
		})
	}
	return pod
}

// putPod adds or changes a pod of the API server. Others do not change it afterwards.
func (n *node) putPod(pod *corev1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	pod = pod.DeepCopy()
	if before := n.pods[pod.Name]; before != nil && before.UID == pod.UID {
		n.podSource.Modify(pod)
	} else {
		n.podSource.Add(pod)
	}
	n.pods[pod.Name] = pod
}

func (n *node) deletePod(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.podSource.Delete(n.pods[name].DeepCopy())
	delete(n.pods, name)
}

// request asks for containers of the pod, as it is after admission.
func (n *node) request(name string, pod *corev1.Pod, change func(*crr.Request), containers ...string) *crr.Request {
	request := n.newRequest(name, pod, change, containers...)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.requestSource.Add(request)
	return request
}

// newRequest is a request of the API server of which the daemon does not know yet.
func (n *node) newRequest(name string, pod *corev1.Pod, change func(*crr.Request), containers ...string) *crr.Request {
	request := &crr.Request{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", Generation: 1,
		CreationTimestamp: metav1.Now(), Annotations: map[string]string{v1beta1.AnnotationAdmittedAt: time.Now().UTC().Format(time.RFC3339Nano)},
		Labels: map[string]string{v1beta1.LabelPodUID: string(pod.UID), v1beta1.LabelNodeName: "node-1", v1beta1.LabelActive: "true"},
	}}
	request.Spec.PodName = pod.Name
	request.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{}
	for _, container := range containers {
		for _, status := range n.podNow(pod.Name).Status.ContainerStatuses {
			if status.Name == container {
				request.Spec.Containers = append(request.Spec.Containers, v1beta1.ContainerRecreateRequestContainer{
					Name: container, StatusContext: &v1beta1.ContainerRecreateRequestContainerContext{ContainerID: status.ContainerID},
				})
			}
		}
	}
	if change != nil {
		change(request)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.requests[name] = request
	return request
}

func (n *node) podNow(name string) *corev1.Pod {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pods[name]
}

// started is kubelet reporting a new instance.
func (n *node) started(instance fakecri.Instance) {
	n.mu.Lock()
	pods := slices.Collect(maps.Values(n.pods))
	n.mu.Unlock()
	for _, pod := range pods {
		if string(pod.UID) != instance.PodUID {
			continue
		}
		pod = pod.DeepCopy()
		for i := range pod.Status.ContainerStatuses {
			if status := &pod.Status.ContainerStatuses[i]; status.Name == instance.Name {
				status.ContainerID, status.RestartCount = fakecri.Name+"://"+instance.ID, int32(instance.RestartCount)
			}
		}
		n.putPod(pod)
	}
}

func (n *node) current(name string) *crr.Request {
	n.mu.Lock()
	defer n.mu.Unlock()
	if request := n.requests[name]; request != nil {
		return request
	}
	return &crr.Request{}
}

// ends waits for a request to end and returns its result and reason.
func (n *node) ends(name string) string {
	n.t.Helper()
	n.eventually("request "+name+" ends", func() bool { return crr.Completed(n.current(name)) })
	result, reason := crr.Result(n.current(name).Status)
	return result + " " + reason
}

func (n *node) eventually(what string, done func() bool) {
	n.t.Helper()
	poll.Until(n.t, what, done, func() string { return fmt.Sprintf("events %q", n.eventTexts()) })
}

func (n *node) statusWrites() []crr.Status {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.writes)
}

// underWay is the number of stops begun and not ended, hooks and waits for a slot included.
func (n *node) underWay() (count int) {
	n.mu.Lock()
	w := n.worker
	n.mu.Unlock()
	for _, instance := range n.runtime.Instances() {
		if w.engine.Stopping(identity.ContainerID{Runtime: fakecri.Name, ID: instance.ID}) {
			count++
		}
	}
	return count
}

func (n *node) stops() []fakecri.Call { return n.runtime.Calls("StopContainer") }

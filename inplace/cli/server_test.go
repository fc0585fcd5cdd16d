package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace"
	inplacecli "github.com/refit-project/refit/inplace/cli"
	"github.com/refit-project/refit/inplace/cli/change"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/kubelet"
)

// server is an API server with one pod, whose kubelet starts what the spec says within a moment. Tests run it in a bubble of synctest.
type server struct {
	mutex   sync.Mutex
	pod     *corev1.Pod
	writes  []string             // subresource or main, and the resource version before
	broken  map[string]string    // images that do not start, and the reason
	ended   map[string]bool      // containers that are not started again
	pending string               // reason of the condition PodResizePending for every resize
	refuse  func(string) error   // by subresource
	away    error                // of reads
	ignore  bool                 // resizes are accepted and not stored
	denied  []string             // permissions
	changed map[string]time.Time // when a container's image was written
	drained time.Time            // when the pod was taken out of its Services last
}

func newServer(gates ...corev1.PodConditionType) *server {
	pod := web()
	pod.ResourceVersion, pod.Generation = "1", 1
	pod.Spec.Containers[1].Resources = *pod.Spec.Containers[0].Resources.DeepCopy()
	for _, gate := range gates {
		pod.Spec.ReadinessGates = append(pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: gate})
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: gate, Status: corev1.ConditionTrue})
	}
	s := &server{pod: pod, broken: map[string]string{}, ended: map[string]bool{}, changed: map[string]time.Time{}}
	s.kubelet()
	return s
}

// kubelet starts containers and writes the status.
func (s *server) kubelet() {
	was := s.pod.Status.DeepCopy()
	s.pod.Status.ObservedGeneration, s.pod.Status.ContainerStatuses = s.pod.Generation, nil
	all := true
	for _, container := range s.pod.Spec.Containers {
		status := corev1.ContainerStatus{Name: container.Name}
		if i := slices.IndexFunc(was.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.Name == container.Name }); i >= 0 {
			status = was.ContainerStatuses[i]
		}
		if status.Image != container.Image {
			status.Image, status.ImageID, status.RestartCount = container.Image, "id:"+container.Image, status.RestartCount+1
			status.ContainerID = fmt.Sprintf("containerd://%s-%d", container.Name, status.RestartCount)
		}
		status.AllocatedResources = container.Resources.Requests
		status.State, status.Ready = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, true
		if reason := s.broken[container.Image]; reason != "" {
			status.State, status.Ready = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "no"}}, false
		}
		if s.ended[container.Name] || s.broken[container.Image] == "ended" {
			status.State, status.Ready = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}, false
		}
		all = all && status.Ready
		s.pod.Status.ContainerStatuses = append(s.pod.Status.ContainerStatuses, status)
	}
	s.condition(corev1.ContainersReady, all)
	for _, gate := range s.pod.Spec.ReadinessGates {
		c := kubelet.Condition(&s.pod.Status, gate.ConditionType)
		all = all && c != nil && c.Status == corev1.ConditionTrue
	}
	s.condition(corev1.PodReady, all)
}

func (s *server) condition(kind corev1.PodConditionType, is bool) {
	status := corev1.ConditionFalse
	if is {
		status = corev1.ConditionTrue
	}
	if c := kubelet.Condition(&s.pod.Status, kind); c != nil {
		c.Status = status
		return
	}
	s.pod.Status.Conditions = append(s.pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: status})
}

// edit is a change by somebody else.
func (s *server) edit(change func(*corev1.Pod)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	change(s.pod)
	s.pod.Generation++
	s.store()
}

func (s *server) store() {
	version, _ := strconv.Atoi(s.pod.ResourceVersion)
	s.pod.ResourceVersion = strconv.Itoa(version + 1)
	s.kubelet()
}

func (s *server) Pod(ctx context.Context, _, _ string) (*corev1.Pod, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.pod.DeepCopy(), errors.Join(s.away, ctx.Err())
}

func (s *server) PatchPod(ctx context.Context, pod *corev1.Pod, subresource string, patch []byte) (*corev1.Pod, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.writes = append(s.writes, subresource+"@"+pod.ResourceVersion)
	if s.refuse != nil {
		if err := s.refuse(subresource); err != nil {
			return nil, err
		}
	}
	var of metav1.PartialObjectMetadata
	if err := errors.Join(json.Unmarshal(patch, &of), ctx.Err()); err != nil {
		return nil, err
	}
	if of.ResourceVersion != s.pod.ResourceVersion {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, pod.Name, errors.New("changed"))
	}
	text, err := json.Marshal(s.pod)
	if err != nil {
		return nil, err
	}
	text, err = strategicpatch.StrategicMergePatch(text, patch, &corev1.Pod{})
	stored := &corev1.Pod{}
	if err := errors.Join(err, json.Unmarshal(text, stored)); err != nil {
		return nil, err
	}
	if s.ignore && subresource == "resize" {
		return s.pod.DeepCopy(), nil
	}
	for i := range stored.Spec.Containers {
		plan.AsStored(&stored.Spec.Containers[i].Resources)
		if name := stored.Spec.Containers[i].Name; stored.Spec.Containers[i].Image != s.pod.Spec.Containers[i].Image {
			s.changed[name] = time.Now()
		}
	}
	if fmt.Sprint(stored.Spec) != fmt.Sprint(s.pod.Spec) {
		stored.Generation++
	}
	if kubelet.Ready(s.pod) && !kubelet.Ready(stored) {
		s.drained = time.Now()
	}
	same := fmt.Sprint(stored) == fmt.Sprint(s.pod)
	s.pod = stored
	if s.pending != "" && subresource == "resize" {
		s.pod.Status.Conditions = append(s.pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Reason: s.pending, Message: "no room"})
	}
	if !same {
		s.store()
	}
	return s.pod.DeepCopy(), nil
}

func (s *server) TryPatchPod(context.Context, *corev1.Pod, string, []byte) error { return nil }

func (s *server) Restart(context.Context, *corev1.Pod, inplace.Instance) error {
	return errors.New("no restart was expected")
}

func (s *server) WatchPod(context.Context, *corev1.Pod) (watch.Interface, error) {
	return nil, errors.New("no watch") // the pod is read again after a while
}

func (s *server) May(_ context.Context, _ string, right inplacecli.Right) (bool, error) {
	return !slices.Contains(s.denied, right.String()), nil
}

func (s *server) Template(context.Context, string, metav1.OwnerReference) (*corev1.PodTemplateSpec, error) {
	return nil, errors.New("forbidden")
}

// image and open read the pod.
func (s *server) image(container string) string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return plan.Find(&s.pod.Spec, container).Image
}

func (s *server) open(gate corev1.PodConditionType) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	c := kubelet.Condition(&s.pod.Status, gate)
	return c != nil && c.Status == corev1.ConditionTrue
}

func (s *server) record() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.pod.Annotations[v1beta1.AnnotationInPlaceUpdateState]
}

// set is a command.
func (s *server) set(ctx context.Context, config inplacecli.Config, change change.Change) (string, error) {
	var out bytes.Buffer
	config.API, config.Output = s, console.NewOutput(&out, false)
	err := inplacecli.Update(ctx, config, "demo", inplacecli.Target{Kind: inplacecli.KindPod, Name: "web"}, change)
	return out.String(), err
}

// ended is a command that was started beside others.
type ended struct {
	said string
	err  error
}

func (s *server) start(ctx context.Context, config inplacecli.Config, change change.Change) chan ended {
	done := make(chan ended, 1)
	go func() {
		said, err := s.set(ctx, config, change)
		done <- ended{said, err}
	}()
	return done
}

func images(t *testing.T, pairs ...string) change.Change {
	t.Helper()
	return must(change.Image(pairs))
}

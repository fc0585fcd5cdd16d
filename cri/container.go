package cri

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/refit-project/refit/identity"
	"github.com/refit-project/refit/kubelet"
)

// Container is one instance of a container as the runtime lists it. kubelet makes a new instance at
// every start, so a name may occur more than once.
type Container struct {
	ID        string // as the runtime takes it; identity.ContainerID adds Version.RuntimeName
	Name      string // name in the pod's spec
	SandboxID string

	// The pod by its labels; empty for a container that kubelet did not make. For a static pod
	// PodUID is the UID from its file's hash and not the one of the mirror pod in the API.
	PodName, PodNamespace, PodUID string

	State     identity.State
	CreatedAt time.Time
	Attempt   uint32 // kubelet's restart count at creation
	Image     string // as the spec asked for it
	ImageID   string // what it resolved to on this node
}

// ContainerStatus is a Container seen close.
type ContainerStatus struct {
	Container
	StartedAt  time.Time // zero: not started
	FinishedAt time.Time // zero: not finished; containerd gives a program that ends at once a time just before StartedAt
	ExitCode   int32     // meaningless before FinishedAt
	Reason     string    // for example Completed, Error, OOMKilled
	Message    string

	RestartCount   int32  // annotation of kubelet; Attempt where it is missing or malformed
	Hash           string // kubelet's hash of the container's spec
	PreStopHandler string // corev1.LifecycleHandler as JSON; empty: none
}

// ListContainers lists the instances of one pod, or of all pods for an empty podUID, newest first.
// Doubled entries and those of another pod, which a runtime should not send, are left out: what is
// listed may be stopped.
func (c *Client) ListContainers(ctx context.Context, podUID string) ([]Container, error) {
	req := &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{}}
	if podUID != "" {
		req.Filter.LabelSelector = map[string]string{kubelet.LabelPodUID: podUID}
	}
	res, err := c.runtime.ListContainers(ctx, req)
	if err != nil {
		return nil, err
	}
	list := make([]Container, 0, len(res.GetContainers()))
	seen := make(map[string]bool, len(res.GetContainers()))
	for _, m := range res.GetContainers() {
		got := listed(m)
		if got.ID == "" || seen[got.ID] || (podUID != "" && got.PodUID != podUID) {
			continue
		}
		seen[got.ID] = true
		list = append(list, got)
	}
	slices.SortStableFunc(list, newestFirst)
	return list, nil
}

// ContainerStatus looks at one instance. It is ErrNotFound when there is none of exactly this ID;
// runtimes also take a unique prefix for an ID, and what matches only so is not found here.
func (c *Client) ContainerStatus(ctx context.Context, id string) (ContainerStatus, error) {
	if id == "" {
		return ContainerStatus{}, fmt.Errorf("ContainerStatus: %w: empty ID", ErrNotFound)
	}
	res, err := c.runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
	if err != nil {
		return ContainerStatus{}, err
	}
	if got := res.GetStatus().GetId(); got != id {
		return ContainerStatus{}, fmt.Errorf("ContainerStatus %s: %w: the runtime answered for %q", shortID(id), ErrNotFound, shortID(got))
	}
	return statusOf(res.GetStatus()), nil
}

// newestFirst orders as kubelet does, by creation; the rest makes the order total.
func newestFirst(a, b Container) int {
	return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.Attempt, a.Attempt), cmp.Compare(a.ID, b.ID))
}

func listed(m *runtimeapi.Container) Container {
	labels := m.GetLabels()
	return Container{
		ID:           m.GetId(),
		Name:         cmp.Or(labels[kubelet.LabelContainerName], m.GetMetadata().GetName()),
		SandboxID:    m.GetPodSandboxId(),
		PodName:      labels[kubelet.LabelPodName],
		PodNamespace: labels[kubelet.LabelPodNamespace],
		PodUID:       labels[kubelet.LabelPodUID],
		State:        stateOf(m.GetState()),
		CreatedAt:    timeOf(m.GetCreatedAt()),
		Attempt:      m.GetMetadata().GetAttempt(),
		Image:        cmp.Or(m.GetImage().GetUserSpecifiedImage(), m.GetImage().GetImage()),
		ImageID:      cmp.Or(m.GetImageId(), m.GetImageRef()),
	}
}

// statusOf reads what a status says. CRI's status does not name the sandbox.
func statusOf(m *runtimeapi.ContainerStatus) ContainerStatus {
	labels, annotations := m.GetLabels(), m.GetAnnotations()
	status := ContainerStatus{
		Container: Container{
			ID:           m.GetId(),
			Name:         cmp.Or(labels[kubelet.LabelContainerName], m.GetMetadata().GetName()),
			PodName:      labels[kubelet.LabelPodName],
			PodNamespace: labels[kubelet.LabelPodNamespace],
			PodUID:       labels[kubelet.LabelPodUID],
			State:        stateOf(m.GetState()),
			CreatedAt:    timeOf(m.GetCreatedAt()),
			Attempt:      m.GetMetadata().GetAttempt(),
			Image:        cmp.Or(m.GetImage().GetUserSpecifiedImage(), m.GetImage().GetImage()),
			ImageID:      cmp.Or(m.GetImageId(), m.GetImageRef()),
		},
		StartedAt:      timeOf(m.GetStartedAt()),
		FinishedAt:     timeOf(m.GetFinishedAt()),
		ExitCode:       m.GetExitCode(),
		Reason:         clip(m.GetReason()),
		Message:        clip(m.GetMessage()),
		RestartCount:   int32(min(m.GetMetadata().GetAttempt(), 1<<31-1)),
		Hash:           annotations[kubelet.AnnotationContainerHash],
		PreStopHandler: annotations[kubelet.AnnotationPreStopHandler],
	}
	if n, err := strconv.ParseInt(annotations[kubelet.AnnotationRestartCount], 10, 32); err == nil && n >= 0 {
		status.RestartCount = int32(n)
	}
	return status
}

// stateOf is StateUnknown for a state that this code does not know.
func stateOf(s runtimeapi.ContainerState) identity.State {
	switch s {
	case runtimeapi.ContainerState_CONTAINER_CREATED:
		return identity.StateCreated
	case runtimeapi.ContainerState_CONTAINER_RUNNING:
		return identity.StateRunning
	case runtimeapi.ContainerState_CONTAINER_EXITED:
		return identity.StateExited
	default:
		return identity.StateUnknown
	}
}

// timeOf reads CRI's nanoseconds since 1970. Zero means not set, and so does a negative number:
// some runtimes send Go's zero time that way.
func timeOf(ns int64) time.Time {
	if ns <= 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

package cri

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kubelet"
)

// Container is one instance of a container in the runtime's list. kubelet creates a new instance at every start, so a name
// may occur more than once.
type Container struct {
	ID        string // for calls of the runtime; identity.ContainerID adds Version.RuntimeName
	Name      string // name in the pod's spec
	SandboxID string

	// The pod by its labels; empty for a container that kubelet did not create. For a static pod PodUID is the UID from the
	// hash of its file, not the UID of the mirror pod in the API.
	PodName, PodNamespace, PodUID string

	State     identity.State
	CreatedAt time.Time
	Attempt   uint32 // kubelet's restart count at creation
	Image     string // as in the spec
	ImageID   string // the image on this node
}

// ContainerStatus has the details of a Container.
type ContainerStatus struct {
	Container
	StartedAt  time.Time // zero: not started
	FinishedAt time.Time // zero: not finished; containerd gives a program that ends at once a time just before StartedAt
	ExitCode   int32     // meaningless before FinishedAt
	Reason     string    // for example Completed, Error, OOMKilled
	Message    string

	RestartCount   int32  // from an annotation of kubelet; Attempt if that is missing or malformed
	Hash           string // kubelet's hash of the container's spec
	PreStopHandler string // corev1.LifecycleHandler as JSON; empty without a hook
}

// BelongsTo reports whether kubelet has created the instance for this container of a pod. uid is the UID of the pod in the runtime.
// The container IDs in the status of a pod are no proof of that: whoever may write the status may put the ID of an instance of
// another pod there.
func (c *Container) BelongsTo(uid, namespace, pod, container string) bool {
	return c.PodUID == uid && c.PodNamespace == namespace && c.PodName == pod && c.Name == container
}

// ListContainers lists the instances of one pod, or of all pods for an empty podUID, newest first. It leaves out duplicates
// and instances of another pod, which a runtime should not send, because listed instances may be stopped.
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

// ContainerStatus returns the status of one instance. The error is ErrNotFound if there is none with exactly this ID:
// runtimes also accept a unique prefix of an ID, which is not found here.
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

// newestFirst orders by creation, as kubelet does, and then by other fields to make the order total.
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

// statusOf converts a status. CRI's status does not name the sandbox.
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

// stateOf converts a state. Unknown values become StateUnknown.
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

// timeOf converts CRI's nanoseconds since 1970. Zero means not set, and so does a negative number: some runtimes send Go's
// zero time as one.
func timeOf(ns int64) time.Time {
	if ns <= 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

package inpod

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/signal"
)

// missingPatience is how long an instance without a process may be reported as running in the pod's status: kubelet
// notices an exit within one or two seconds, and a busy kubelet within a few more.
const missingPatience = 15 * time.Second

// killed is the exit code of a container that was ended by SIGKILL.
const killed = 137

// observer implements engine.Observer with the pod's status and its processes.
type observer struct {
	own       string // the sidecar's container
	processes Processes
	observed  func() *corev1.Pod

	request types.UID // the request that missing is about
	// missing maps instances that the pod's status calls running to the time since which they have had no process.
	missing map[identity.ContainerID]time.Time
}

// Pod implements engine.Observer.
func (o *observer) Pod(context.Context, identity.Pod) (*corev1.Pod, error) {
	if pod := o.observed(); pod != nil {
		return pod, nil
	}
	return nil, errors.New("it has not been observed yet")
}

// Containers implements engine.Observer.
func (o *observer) Containers(ctx context.Context, request *crr.Request, pod *corev1.Pod, stopping func(identity.ContainerID) bool) (crr.Observation, error) {
	if o.request != request.UID {
		o.request, o.missing = request.UID, map[identity.ContainerID]time.Time{}
	}
	observed := crr.Observation{Runtime: runtimeOf(pod), Instances: instances(pod), Unstoppable: map[string]string{}}
	o.markEnded(ctx, request, observed.Instances, stopping)
	for _, container := range request.Spec.Containers {
		of := observed.Instances[container.Name]
		if len(of) == 0 || of[0].State != identity.StateRunning || stopping(of[0].ID) {
			continue
		}
		err := o.unstoppable(ctx, container.Name, of[0].ID)
		switch {
		case errors.Is(err, errHidden) && o.mayHaveEnded(pod, of[0].ID):
			observed.Unseen = fmt.Sprintf("no process of container %s is seen; waiting for the pod's status to say whether it has ended", container.Name)
		case err != nil:
			observed.Unstoppable[container.Name] = err.Error()
		}
	}
	return observed, nil
}

// markEnded marks instances as exited that the request stops and that have no process any more, because the pod's status
// lags behind. Their exit code is not known; for restartPolicy OnFailure, where it matters, they count as killed.
func (o *observer) markEnded(ctx context.Context, request *crr.Request, all map[string][]crr.Instance, stopping func(identity.ContainerID) bool) {
	for _, state := range request.Status.ContainerRecreateStates {
		of := all[state.Name]
		if len(of) == 0 || of[0].State != identity.StateRunning || of[0].ID.String() != state.ContainerID || stopping(of[0].ID) {
			continue
		}
		if _, err := o.processes.Find(ctx, first(of[0].ID)); errors.Is(err, signal.ErrNotFound) {
			of[0].State, of[0].ExitCode, of[0].FinishedAt = identity.StateExited, killed, time.Now()
		}
	}
}

var errHidden = errors.New("its processes cannot be seen: the pod does not share its PID namespace (shareProcessNamespace), or hides cgroups")

// unstoppable returns why the sidecar cannot stop an instance, or nil.
func (o *observer) unstoppable(ctx context.Context, container string, id identity.ContainerID) error {
	if container == o.own {
		return errors.New("the sidecar does not stop itself")
	}
	found, err := o.processes.Find(ctx, first(id))
	if errors.Is(err, signal.ErrNotFound) {
		return errHidden
	}
	if err != nil {
		return err
	}
	return o.processes.Check(found[0])
}

// mayHaveEnded reports whether an instance without a process, which the pod's status still calls running, may have
// ended a moment ago: only if processes of other containers are visible at all, and only for missingPatience.
func (o *observer) mayHaveEnded(pod *corev1.Pod, id identity.ContainerID) bool {
	if share := pod.Spec.ShareProcessNamespace; !pod.Spec.HostPID && (share == nil || !*share) {
		return false
	}
	now := time.Now()
	since, known := o.missing[id]
	if !known {
		o.missing[id], since = now, now
	}
	return now.Sub(since) < missingPatience
}

package crr

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/recheck"
)

// Observation is what is known about the pod of a request at one moment.
type Observation struct {
	// Pod is read from the API server or its cache; nil if this node no longer has a pod with the request's name and UID.
	Pod *corev1.Pod
	// Runtime is the scheme of container IDs on this node, for example "containerd".
	Runtime string
	// Instances lists the instances of each container of the request that the runtime still has, newest first, by container name.
	Instances map[string][]Instance
	// Beside has the newest instance of each container of the pod that is not in the request, with ID and State only, by
	// container name. Nothing is done to them. It is nil if they are not observed.
	Beside map[string]Instance
	// Unseen says why the containers cannot be observed now, for example because the runtime is down; empty if they can.
	Unseen string
	// Unstoppable says by container name why the running instance cannot be stopped from here. It is nil if a container
	// runtime stops them.
	Unstoppable map[string]string
	// Actions holds the actions of this process for the request, by container name. It is lost when the process ends,
	// which costs at most a repeated attempt.
	Actions map[string]ActionState
	// TakenAt is since when this process has worked on the request; zero means since now. It matters if the API server
	// stores no conditions, as with the CRDs of OpenKruise up to 1.9.
	TakenAt time.Time
	// Later says that no stop can begin now because too many actions are in progress. So no stop is recorded as begun.
	Later bool
	// DropsIDs says that the API server has dropped container IDs written to the states of the request, as under
	// OpenKruise's CRDs. It matters with Options.SignalsOnly; otherwise the IDs are recorded in AnnotationInstances.
	DropsIDs bool
	// ClockOffset is the API server's clock minus the local clock. Times written by other machines are compared through it.
	ClockOffset time.Duration
}

// Instance is one run of a container. Times are from the node's clock.
type Instance struct {
	ID                    identity.ContainerID
	State                 identity.State
	StartedAt, FinishedAt time.Time
	ExitCode              int32
	RestartCount          int32 // 0 for the first instance
}

// ActionState is the state of the actions on one container of a request.
type ActionState struct {
	// Running says that a stop or start of the container is in progress.
	Running bool
	// Done is when the last action ended.
	Done time.Time
	// Touches counts the touches of the pod that were to make kubelet sync it.
	Touches int
	// Failures counts the failures since the last success. Err is the last error, with what was being done; empty after
	// a success.
	Failures int
	Err      string
	// Transient says that the runtime may become available again, so the failures do not fail the container.
	Transient bool
	// Unbegun says that the last action failed before the runtime can have begun the stop, so no grace period has begun.
	Unbegun bool
}

// Decision is one step. At most one of Stop and Start is set, and neither may be carried out before Status is stored:
// the step is safe to repeat because the instance to stop is recorded first.
type Decision struct {
	Status Status
	Stop   *Stop
	Start  *Start
	// Again is when to plan again even without a change.
	Again recheck.At
	// Why explains the decision in one sentence, for the log.
	Why string
}

// Stop orders the stop of one instance.
type Stop struct {
	Container string
	ID        identity.ContainerID
	// Grace is the remaining time between SIGTERM and SIGKILL, including the preStop hook; 0 kills at once.
	Grace time.Duration
	// PreStop is the hook in the pod's spec, or nil. The copy of the hook in the request is only for its readers: a
	// request that has not passed admission must not choose what is executed.
	PreStop *corev1.LifecycleHandler
	// Remove lists instances to remove after the stop, in this order, so that kubelet starts the next one without crash
	// back-off: first the earlier exited instances, which also cause back-off, and the stopped instance last, because
	// it shows that the stop has been done. Nil means none.
	Remove []identity.ContainerID
}

// Start orders to make kubelet start a container that does not run now.
type Start struct {
	Container string
	// Remove lists exited instances to remove, in this order. Kubelet computes its back-off from the instances it sees.
	Remove []identity.ContainerID
	// Touch says to touch the pod's annotation AnnotationNudge, so that kubelet syncs the pod.
	Touch bool
}

// exitedInstances returns the exited instances of a container, the newest last.
func (o Observation) exitedInstances(container string) []identity.ContainerID {
	var ids []identity.ContainerID
	for _, instance := range slices.Backward(o.Instances[container]) {
		if instance.State == identity.StateExited {
			ids = append(ids, instance.ID)
		}
	}
	return ids
}

// newest returns the most recently created instance of the container.
func (o Observation) newest(container string) (Instance, bool) {
	instances := o.Instances[container]
	if len(instances) == 0 {
		return Instance{}, false
	}
	return instances[0], true
}

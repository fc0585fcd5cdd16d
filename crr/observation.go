package crr

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/identity"
)

// Observation is what is known of the pod of a request at one moment.
type Observation struct {
	// Pod as the API server has it; nil when no pod of the request's name and UID is on this node any more.
	Pod *corev1.Pod
	// Runtime is the scheme of container IDs on this node, for example "containerd".
	Runtime string
	// Instances of each container that the runtime still knows, newest first, by container name.
	Instances map[string][]Instance
	// Unseen says why the containers cannot be seen now, as when the runtime is down; empty: they can.
	Unseen string
	// Unstoppable says why the running instance of a container cannot be stopped from here, by container name. Nil
	// where a container runtime stops them.
	Unstoppable map[string]string
	// Acts is what this process has done for the request, by container name. It is lost when the process
	// dies, which costs a repeated attempt at most.
	Acts map[string]Act
	// TakenAt is since when this process has worked on the request. It matters where the API server stores no
	// conditions, as with OpenKruise up to 1.9; zero: since now.
	TakenAt time.Time
	// Later: no stop can begin now, as others are under way, so none is recorded as begun.
	Later bool
	// DropsIDs: container IDs that were written into the states of the request were not stored, as under OpenKruise's CRDs.
	// It matters with Options.SignalsOnly: others record them in AnnotationInstances.
	DropsIDs bool
	// ClockOffset is the API server's clock minus ours. Times that others wrote are compared through it.
	ClockOffset time.Duration
}

// Instance is one run of a container. Times are of the node's clock.
type Instance struct {
	ID                    identity.ContainerID
	State                 identity.State
	StartedAt, FinishedAt time.Time
	ExitCode              int32
	RestartCount          int32 // of this instance: 0 is the first
}

// Act is what has been done about one container of a request.
type Act struct {
	// Running: a stop or a start of it is under way.
	Running bool
	// Done is when the last one ended.
	Done time.Time
	// Nudges counts the times kubelet has been woken.
	Nudges int
	// Failures in a row, and the last error, which says what was being done; empty after a success.
	Failures int
	Err      string
	// Transient: the runtime may come back, so failing is no verdict on the container.
	Transient bool
	// Unbegun: the last one failed before the runtime can have begun the stop, so no grace period has begun.
	Unbegun bool
}

// Decision is one step. At most one of Stop and Start is set, and neither may be carried out before Status is
// stored: the record of what is about to be stopped is what makes the step safe to repeat.
type Decision struct {
	Status Status
	Stop   *Stop
	Start  *Start
	// Again is when to look again even if nothing happens; zero when only a change matters.
	Again time.Time
	// Why is one sentence for the log.
	Why string
}

// Stop is the order to stop one exact instance.
type Stop struct {
	Container string
	ID        identity.ContainerID
	// Grace is what is left between TERM and KILL, preStop included; 0 kills at once.
	Grace time.Duration
	// PreStop is the hook of the pod's container; nil: none. The request has a copy that is for its reader only: a request
	// that has not passed admission must not choose what is executed.
	PreStop *corev1.LifecycleHandler
	// Remove these instances once it is stopped, in this order, so that kubelet starts the next without crash
	// back-off: the earlier ones, from which kubelet would back off as well, and this one last, so that it
	// shows until then what has been done. Nil: none.
	Remove []identity.ContainerID
}

// Start is the order to make kubelet start a container that is not running now.
type Start struct {
	Container string
	// Remove these exited instances, in this order: kubelet backs off from what it can see.
	Remove []identity.ContainerID
	// Nudge: wake kubelet by touching the pod's annotation AnnotationNudge.
	Nudge bool
}

// remains are the exited instances of a container, the newest last.
func (o Observation) remains(container string) []identity.ContainerID {
	var ids []identity.ContainerID
	for _, instance := range slices.Backward(o.Instances[container]) {
		if instance.State == identity.StateExited {
			ids = append(ids, instance.ID)
		}
	}
	return ids
}

// newest returns the instance of the container that was created last.
func (o Observation) newest(container string) (Instance, bool) {
	instances := o.Instances[container]
	if len(instances) == 0 {
		return Instance{}, false
	}
	return instances[0], true
}

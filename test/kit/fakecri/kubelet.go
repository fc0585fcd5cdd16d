package fakecri

import (
	"maps"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Kubelet makes the fake start containers again, as restartPolicy Always does.
type Kubelet struct {
	// Delay is the time from a container's end, or its removal, to the start of the next instance,
	// given how many ended instances of that name are still there; none is what a removal of all
	// leaves. Nil: at once.
	Delay func(exited int) time.Duration
	// OnStart is called for each new running instance, on a goroutine of the fake. Optional.
	OnStart func(Instance)
}

// ActAsKubelet turns the toy kubelet on for what ends from now on.
func (r *Runtime) ActAsKubelet(k Kubelet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kubelet = &k
}

// scheduleRestart looks again after the delay, and does nothing then if another instance of the
// name runs already: the end and the removal of one container both come here. mu is held.
func (r *Runtime) scheduleRestart(last *instance) {
	if r.kubelet == nil {
		return
	}
	k, delay := *r.kubelet, time.Duration(0)
	if k.Delay != nil {
		_, exited := r.sameName(last)
		delay = k.Delay(exited)
	}
	r.after(delay, func() { r.restart(k, last) })
}

func (r *Runtime) restart(k Kubelet, last *instance) {
	r.mu.Lock()
	s := r.sandboxes[last.sandboxID]
	alive, _ := r.sameName(last)
	if s == nil || !s.ready || alive > 0 {
		r.mu.Unlock()
		return
	}
	config := &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{
			Name:    last.config.GetMetadata().GetName(),
			Attempt: last.config.GetMetadata().GetAttempt() + 1,
		},
		Image: last.config.GetImage(), Command: last.config.GetCommand(), Args: last.config.GetArgs(),
		Labels: last.config.GetLabels(), Annotations: maps.Clone(last.config.GetAnnotations()),
	}
	in := r.addInstance(s, config, last.program)
	start := func() {
		r.mu.Lock()
		r.begin(in)
		view := r.view(in)
		r.mu.Unlock()
		if k.OnStart != nil {
			k.OnStart(view)
		}
	}
	r.mu.Unlock()
	if in.program.StartLatency > 0 {
		r.after(in.program.StartLatency, start)
		return
	}
	start()
}

// sameName counts the instances of last's container: those that run or are about to, and those that
// ended. mu is held.
func (r *Runtime) sameName(last *instance) (alive, exited int) {
	for _, in := range r.instances {
		switch {
		case in.sandboxID != last.sandboxID, in.config.GetMetadata().GetName() != last.config.GetMetadata().GetName():
		case in.state == runtimeapi.ContainerState_CONTAINER_EXITED:
			exited++
		default:
			alive++
		}
	}
	return alive, exited
}

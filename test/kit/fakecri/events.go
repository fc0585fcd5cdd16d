package fakecri

import (
	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// GetContainerEvents implements CRI. A subscriber more than 1024 events behind loses what follows.
func (r *Runtime) GetContainerEvents(_ *runtimeapi.GetEventsRequest, s grpc.ServerStreamingServer[runtimeapi.ContainerEventResponse]) error {
	events := make(chan *runtimeapi.ContainerEventResponse, 1024)
	r.mu.Lock()
	r.subscribers[events] = true
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.subscribers, events)
	}()
	for {
		select {
		case <-s.Context().Done():
			return s.Context().Err()
		case e := <-events:
			if err := s.Send(e); err != nil {
				return err
			}
		}
	}
}

// Subscribers is how many event streams are open.
func (r *Runtime) Subscribers() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.subscribers)
}

// publish is called with mu held.
func (r *Runtime) publish(in *instance, t runtimeapi.ContainerEventType) {
	if r.fault("GetContainerEvents", true).Lose {
		return
	}
	e := &runtimeapi.ContainerEventResponse{
		ContainerId: in.id, ContainerEventType: t, CreatedAt: r.now(),
		ContainersStatuses: []*runtimeapi.ContainerStatus{statusOf(in)},
	}
	if s := r.sandboxes[in.sandboxID]; s != nil {
		e.PodSandboxStatus = s.status()
	}
	for events := range r.subscribers {
		select {
		case events <- e:
		default:
		}
	}
}

package requests

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/crr"
)

// follow looks at a pod's requests whenever the pod or one of them changes.
func (w *Worker) follow(informer cache.SharedIndexInformer) error {
	changed := func(object any) {
		switch object := object.(type) {
		case *crr.Request:
			if !w.latest.seen(object) {
				w.queue.Add(podOf(object))
			}
		case *corev1.Pod:
			w.enqueuePod(object)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		UpdateFunc: func(_, object any) { changed(object) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			if request, ok := object.(*crr.Request); ok {
				w.forget(request)
			}
			changed(object)
		},
	})
	if err != nil {
		return fmt.Errorf("follow changes: %w", err)
	}
	return nil
}

// ContainerEvent is to be called with every event of the container runtime. What brings nothing new is skipped: a new
// instance is waited for in the pod's status, which follows, and the end of one that is being stopped is reported by
// the end of that act.
func (w *Worker) ContainerEvent(event cri.Event) {
	if event.Relist {
		w.enqueueAll()
		return
	}
	if event.Type == cri.EventCreated || event.Type == cri.EventStarted || w.acts.busy(w.containerID(event.ContainerID)) {
		return
	}
	object, found, err := w.pods.GetStore().GetByKey(event.PodNamespace + "/" + event.PodName)
	if pod, ok := object.(*corev1.Pod); ok && found && err == nil {
		w.enqueuePod(pod)
	}
}

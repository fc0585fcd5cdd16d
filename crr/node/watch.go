package node

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/identity"
)

// byPod is the index of requests by namespace and name of their pods.
const byPod = "pod"

// follow enqueues the pod whenever the pod or one of its requests changes. The result says when the first list has been followed,
// which is later than when the informer has it.
func (w *Worker) follow(informer cache.SharedIndexInformer) (cache.InformerSynced, error) {
	changed := func(object any) {
		switch object := object.(type) {
		case *crr.Request:
			w.putRequests(podOf(object))
		case *corev1.Pod:
			w.enqueuePod(object)
		}
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		UpdateFunc: func(_, object any) { changed(object) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			if request, ok := object.(*crr.Request); ok {
				w.engine.Remove(request)
				w.queue.Add(podOf(request))
				return
			}
			changed(object)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("follow changes: %w", err)
	}
	return registration.HasSynced, nil
}

// putRequests passes the requests of a pod in the informer's store to the engine. These are all, also when they are delivered one
// after another in any order: client-go replaces its store before it delivers what an interrupted watch has missed (feature
// gate AtomicFIFO). The newer of two requests is not begun because it was delivered first.
func (w *Worker) putRequests(key identity.Pod) {
	objects, err := w.requests.GetIndexer().ByIndex(byPod, key.String())
	if err != nil {
		w.logger.Error("requests are not indexed by pod", "pod", key, "err", err)
		return
	}
	for _, object := range objects {
		if request, ok := object.(*crr.Request); ok && w.engine.Put(podOf(request), request) {
			w.queue.Add(podOf(request))
		}
	}
}

// ContainerEvent must be called with every event of the container runtime. It skips events that bring nothing new: the
// start of an instance is followed by a change of the pod's status, and the end of an instance that is being stopped is
// reported by the end of that action.
func (w *Worker) ContainerEvent(event cri.Event) {
	if event.Relist {
		w.enqueueAll()
		return
	}
	if event.Type == cri.EventCreated || event.Type == cri.EventStarted || w.engine.Stopping(identity.ContainerID{Runtime: w.runtimeName, ID: event.ContainerID}) {
		return
	}
	object, found, err := w.pods.GetStore().GetByKey(event.PodNamespace + "/" + event.PodName)
	if pod, ok := object.(*corev1.Pod); ok && found && err == nil {
		w.enqueuePod(pod)
	}
}

// podOf returns the pod of a request. It uses the UID from admission, so that requests for a pod are kept apart from
// requests for a later pod with the same name, for example of a StatefulSet.
func podOf(request *crr.Request) identity.Pod {
	return identity.Pod{Namespace: request.Namespace, Name: request.Spec.PodName, UID: request.Labels[v1beta1.LabelPodUID]}
}

// subject returns the pod as the subject of a guard.
func subject(key identity.Pod) guard.Subject {
	return guard.Named(guard.Object{Kind: "Pod", Namespace: key.Namespace, Name: key.Name, UID: key.UID})
}

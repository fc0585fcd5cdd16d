package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/crr"
)

const (
	// relistSlow covers lost events of the runtime, of which there should be none.
	relistSlow = 30 * time.Second
	// relistFast stands in for the events of a runtime that has none, while there are requests.
	relistFast = 500 * time.Millisecond
)

// follow looks at a pod's requests whenever the pod or one of them changes.
func (w *worker) follow(informer cache.SharedIndexInformer) error {
	changed := func(object any) {
		if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = unknown.Obj
		}
		switch object := object.(type) {
		case *crr.Request:
			if own, written := w.written.Load(object.UID); !written || own != object.ResourceVersion {
				w.queue.Add(podOf(object))
			}
		case *corev1.Pod:
			w.wakePod(object)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		UpdateFunc: func(_, object any) { changed(object) },
		DeleteFunc: func(object any) {
			if request, ok := object.(*crr.Request); ok {
				w.written.Delete(request.UID)
			}
			changed(object)
		},
	})
	if err != nil {
		return fmt.Errorf("follow changes: %w", err)
	}
	return nil
}

// watchRuntime wakes the work on the runtime's events, and now and then without, in case one was lost.
func (w *worker) watchRuntime(ctx context.Context) error {
	interval := relistSlow
	supported := make(chan error, 1)
	w.group.Go(func() error {
		supported <- w.runtime.Events(ctx, w.wakeContainer)
		return nil
	})
	for {
		timer := time.NewTimer(interval)
		select {
		case <-timer.C:
			w.wakeAll()
		case err := <-supported:
			if errors.Is(err, cri.ErrUnsupported) {
				w.logger.Warn("the container runtime has no container events: listing instead", "interval", relistFast)
				interval = relistFast
			}
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
		timer.Stop()
	}
}

// wakeContainer passes over what is no news: a new instance is waited for in the pod's status, which follows, and
// the end of one that is being stopped is told by the end of that act.
func (w *worker) wakeContainer(event cri.Event) {
	if event.Relist {
		w.wakeAll()
		return
	}
	w.tellProber(event)
	if event.Type == cri.EventCreated || event.Type == cri.EventStarted || w.acts.busy(w.containerID(event.ContainerID)) {
		return
	}
	object, found, err := w.pods.GetByKey(event.PodNamespace + "/" + event.PodName)
	if pod, ok := object.(*corev1.Pod); ok && found && err == nil {
		w.wakePod(pod)
	}
}

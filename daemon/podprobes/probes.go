package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/daemon/prober"
	"github.com/refit-project/refit/kube"
)

// probesDelay is between looks for NodePodProbes where the API server does not serve them.
const probesDelay = 30 * time.Second

// newProber makes the node's prober. It is told of pods from here on, and works when runProbes runs.
func (w *worker) newProber(metrics *prober.Metrics, pods cache.SharedIndexInformer) (*prober.Manager, error) {
	manager := prober.New(prober.Config{
		Node: w.node, Runtime: w.runtime, Events: w.events, Metrics: metrics, Logger: w.logger,
		Pod: func(namespace, name string) *corev1.Pod {
			object, found, err := w.pods.GetByKey(namespace + "/" + name)
			if err != nil || !found {
				return nil
			}
			pod, _ := object.(*corev1.Pod)
			return pod
		},
	})
	changed := func(object any) {
		if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = unknown.Obj
		}
		if pod, ok := object.(*corev1.Pod); ok {
			manager.PodChanged(pod.UID)
		}
	}
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: changed, UpdateFunc: func(_, object any) { changed(object) }, DeleteFunc: changed,
	})
	if err != nil {
		return nil, fmt.Errorf("follow pods: %w", err)
	}
	return manager, nil
}

// runProbes runs the prober as soon as the API server serves NodePodProbes. The cache of pods is filled.
func (w *worker) runProbes(ctx context.Context, api *kube.Client, manager *prober.Manager) error {
	probes, err := w.awaitProbes(ctx, api)
	if err != nil {
		return nil //nolint:nilerr // the end of the context is the end of the work
	}
	informer, err := probes.Informer(w.node)
	if err != nil {
		return err
	}
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { tellObject(manager, object) }, UpdateFunc: func(_, object any) { tellObject(manager, object) },
		DeleteFunc: func(any) { manager.ObjectChanged(nil) },
	})
	if err != nil {
		return fmt.Errorf("follow the NodePodProbe: %w", err)
	}
	w.group.Go(func() error { informer.RunWithContext(ctx); return nil })
	if cache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
		manager.Run(ctx, probes)
	}
	return nil
}

func tellObject(manager *prober.Manager, object any) {
	if probes, ok := object.(*v1alpha1.NodePodProbe); ok {
		manager.ObjectChanged(probes)
	}
}

// awaitProbes fails only with its context. A cluster may do without pod probes.
func (w *worker) awaitProbes(ctx context.Context, api *kube.Client) (*kube.NodePodProbes, error) {
	for said := false; ; {
		probes, err := api.NodePodProbes(ctx)
		if err == nil {
			return probes, nil
		}
		delay := connectDelay
		if errors.Is(err, kube.ErrProbesNotServed) {
			delay = probesDelay
		}
		if !said && ctx.Err() == nil {
			w.logger.Info("no pod probes yet", "err", err)
			said = true
		}
		if err := pause(ctx, delay); err != nil {
			return nil, err
		}
	}
}

// tellProber passes on the end of a container at once: its pod's status follows a second later.
func (w *worker) tellProber(event cri.Event) {
	if w.prober != nil && event.Type == cri.EventStopped {
		w.prober.ContainerStopped(event.PodNamespace, event.PodName, event.ContainerID)
	}
}

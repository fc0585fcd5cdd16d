package control

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/record"
	"github.com/refit-project/refit/internal/kubelet"
)

// Values of the label cause of refit_manager_container_restarts_total.
const (
	causeRequested = "requested"
	causeOther     = "other"
)

// restarts counts container restarts by cause. Only the elected replica counts.
type restarts struct {
	cache  cache.Cache
	reader client.Reader // reads from the cache
	total  *prometheus.CounterVec
	log    *slog.Logger
}

func addRestarts(mgr ctrl.Manager, cfg Config) error {
	total := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "refit_manager_container_restarts_total",
		Help: "Restarts of containers, by cause: requested (a ContainerRecreateRequest has stopped the previous instance), other (it has ended by itself, or something else has stopped it, as an in-place update).",
	}, []string{"cause"})
	if err := cfg.Metrics.Register(total); err != nil {
		return err
	}
	total.WithLabelValues(causeRequested)
	total.WithLabelValues(causeOther)
	r := &restarts{cache: mgr.GetCache(), reader: mgr.GetCache(), total: total, log: cfg.Logger}
	return mgr.Add(manager.RunnableFunc(r.run))
}

func (r *restarts) run(ctx context.Context) error {
	informer, err := r.cache.GetInformer(ctx, &corev1.Pod{})
	if err != nil {
		return fmt.Errorf("watch pods for restarts: %w", err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
		was, wasPod := before.(*corev1.Pod)
		is, isPod := after.(*corev1.Pod)
		if wasPod && isPod && was.UID == is.UID {
			r.count(ctx, was, is)
		}
	}})
	if err != nil {
		return fmt.Errorf("watch pods for restarts: %w", err)
	}
	<-ctx.Done()
	return informer.RemoveEventHandler(registration)
}

// count counts the restarts between two states of a pod.
func (r *restarts) count(ctx context.Context, was, is *corev1.Pod) {
	for _, statuses := range [][2][]corev1.ContainerStatus{{was.Status.ContainerStatuses, is.Status.ContainerStatuses}, {was.Status.InitContainerStatuses, is.Status.InitContainerStatuses}} {
		for i := range statuses[1] {
			after := &statuses[1][i]
			before := kubelet.StatusIn(statuses[0], after.Name)
			if before == nil || after.RestartCount <= before.RestartCount {
				continue
			}
			others := after.RestartCount - before.RestartCount
			if r.requested(ctx, is, before) {
				r.total.WithLabelValues(causeRequested).Inc()
				others--
			}
			r.total.WithLabelValues(causeOther).Add(float64(others))
		}
	}
}

// requested reports whether a request has stopped the instance. The daemon records the instance in the request's
// status, or in an annotation, before it stops it, so the cache shows the record before the pod's status shows the next
// instance. The container's phase may still be Pending then: the daemon writes the next status only when the container
// is ready, or after some seconds.
func (r *restarts) requested(ctx context.Context, pod *corev1.Pod, instance *corev1.ContainerStatus) bool {
	var list v1beta1.ContainerRecreateRequestList
	if err := r.reader.List(ctx, &list, client.InNamespace(pod.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		r.log.Error("list ContainerRecreateRequests", "namespace", pod.Namespace, "err", err)
		return false
	}
	for i := range list.Items {
		if list.Items[i].Spec.PodName != pod.Name || instance.ContainerID == "" {
			continue
		}
		request := record.Apply(&list.Items[i])
		state, _ := crr.RecreateStateOf(request, instance.Name)
		if state.ContainerID == instance.ContainerID || crr.Stopped(request, instance.Name) == instance.ContainerID {
			return true
		}
	}
	return false
}

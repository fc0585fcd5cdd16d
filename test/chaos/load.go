package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

type request = v1beta1.ContainerRecreateRequest

const loadNamespace = runLabel + "-load"

// startLoad makes the pods.
func (r *run) startLoad(ctx context.Context) ([]*corev1.Pod, error) {
	if err := r.namespace(ctx, loadNamespace); err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	pods := make([]*corev1.Pod, r.Pods)
	for i := range pods {
		pods[i] = r.pod(loadNamespace, fmt.Sprintf("load-%02d", i), r.cluster.nodes[i%len(r.cluster.nodes)], shapes[i%len(shapes)])
		group.Go(func() error { return r.start(ctx, pods[i]) })
	}
	return pods, group.Wait()
}

// load sends requests until the context ends. Those of one pod are sent one after the other, so that their order is
// known; pods do not wait for each other.
func (r *run) load(ctx context.Context, pods []*corev1.Pod) error {
	const waiting = 8
	orders := make([]chan *request, len(pods))
	var senders errgroup.Group
	for i := range pods {
		orders[i] = make(chan *request, waiting)
		senders.Go(func() error {
			for order := range orders[i] {
				r.send(ctx, order)
			}
			return nil
		})
	}
	choice := r.choices()
	ticker := time.NewTicker(time.Duration(float64(time.Second) / r.Rate))
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			for _, queue := range orders {
				close(queue)
			}
			return senders.Wait()
		case <-ticker.C:
		}
		i := choice.IntN(len(pods))
		select {
		case orders[i] <- newRequest(fmt.Sprintf("r-%04d", n), pods[i], choice):
		default: // that pod has enough to do
		}
	}
}

// send creates a request. During an outage that may fail: what matters is what was created.
func (r *run) send(ctx context.Context, order *request) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	if err := r.cluster.Create(ctx, order); err != nil {
		r.unsent.Add(1)
		return
	}
	r.sent.Add(1)
}

// newRequest chooses what is asked for.
func newRequest(name string, pod *corev1.Pod, choice *rand.Rand) *request {
	chance := func(percent int) bool { return choice.IntN(100) < percent }
	order := &request{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: name}}
	order.Spec.PodName = pod.Name
	containers := pod.Spec.Containers
	if len(containers) > 1 && chance(50) {
		containers = containers[choice.IntN(len(containers)):][:1]
	}
	for _, container := range containers {
		order.Spec.Containers = append(order.Spec.Containers, v1beta1.ContainerRecreateRequestContainer{Name: container.Name})
	}
	strategy := v1beta1.ContainerRecreateRequestStrategy{OrderedRecreate: chance(30), ForceRecreate: chance(20)}
	if chance(20) {
		strategy.MinStartedSeconds = 3
	}
	if chance(20) {
		strategy.FailurePolicy = v1beta1.FailurePolicyIgnore
	}
	if chance(20) {
		strategy.TerminationGracePeriodSeconds = new(int64(choice.IntN(3)))
	}
	order.Spec.Strategy = &strategy
	switch {
	case chance(25):
		order.Spec.ActiveDeadlineSeconds = new(int64(15 + choice.IntN(15)))
	case chance(5):
		order.Spec.ActiveDeadlineSeconds = new(int64(3))
	}
	if chance(5) {
		order.Spec.TTLSecondsAfterFinished = new(int32(15))
	}
	return order
}

// choices are a source of choices of its own for each goroutine that needs one.
func (r *run) choices() *rand.Rand { return rand.New(rand.NewPCG(r.Seed, r.sources.Add(1))) }

// drain waits until every request has ended.
func (r *run) drain(ctx context.Context, limit time.Duration) error {
	return until(ctx, "end of all requests", limit, func(ctx context.Context) bool {
		open, err := r.open(ctx)
		return err == nil && len(open) == 0
	})
}

// open requests.
func (r *run) open(ctx context.Context) ([]string, error) {
	var list v1beta1.ContainerRecreateRequestList
	if err := r.cluster.List(ctx, &list); err != nil {
		return nil, err
	}
	var open []string
	for i := range list.Items {
		if list.Items[i].Status.Phase != v1beta1.ContainerRecreateRequestCompleted {
			open = append(open, list.Items[i].Namespace+"/"+list.Items[i].Name)
		}
	}
	return open, nil
}

// last writes to every request, so that the audit log holds what it looks like at the end.
func (r *run) last(ctx context.Context) error {
	var list v1beta1.ContainerRecreateRequestList
	if err := r.cluster.List(ctx, &list); err != nil {
		return fmt.Errorf("list requests: %w", err)
	}
	for i := range list.Items {
		order := &list.Items[i]
		before := order.DeepCopy()
		metav1.SetMetaDataAnnotation(&order.ObjectMeta, runLabel+"/last", "true")
		if err := r.cluster.Patch(ctx, order, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("look at request %s: %w", order.Name, err)
		}
	}
	return nil
}

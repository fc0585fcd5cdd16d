package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/chaos/cluster"
)

// Request is what is sent.
type Request = v1beta1.ContainerRecreateRequest

// Namespace is where the pods of the requests are.
const Namespace = cluster.Label + "-load"

// Requests sends requests and counts them.
type Requests struct {
	cluster *cluster.Cluster
	choices Choices

	sent, unsent atomic.Int64
}

// Choices is a source of choices of its own for each goroutine that needs one.
type Choices func() *rand.Rand

// NewRequests returns Requests for the pods of a cluster.
func NewRequests(c *cluster.Cluster, choices Choices) *Requests {
	return &Requests{cluster: c, choices: choices}
}

// Sent is how many requests were created, and how many could not be.
func (r *Requests) Sent() (sent, unsent int64) { return r.sent.Load(), r.unsent.Load() }

// StartPods creates n pods and waits until they are ready.
func (r *Requests) StartPods(ctx context.Context, n int) ([]*corev1.Pod, error) {
	if err := r.cluster.Namespace(ctx, Namespace); err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = r.cluster.Pod(Namespace, fmt.Sprintf("load-%02d", i), r.cluster.Nodes[i%len(r.cluster.Nodes)], cluster.Shapes[i%len(cluster.Shapes)])
		group.Go(func() error { return r.cluster.Start(ctx, pods[i]) })
	}
	return pods, group.Wait()
}

// Run sends rate requests per second until the context ends. Requests for one pod are sent one after the other, so that their order is
// known; pods do not wait for each other.
func (r *Requests) Run(ctx context.Context, pods []*corev1.Pod, rate float64) error {
	const waiting = 8
	orders := make([]chan *Request, len(pods))
	var senders errgroup.Group
	for i := range pods {
		orders[i] = make(chan *Request, waiting)
		senders.Go(func() error {
			for order := range orders[i] {
				r.Send(ctx, order)
			}
			return nil
		})
	}
	choice := r.choices()
	ticker := time.NewTicker(time.Duration(float64(time.Second) / rate))
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
		case orders[i] <- NewRequest(fmt.Sprintf("r-%04d", n), pods[i], choice):
		default: // that pod has enough to do
		}
	}
}

// Send creates a request. During an outage that may fail: what matters is what was created.
func (r *Requests) Send(ctx context.Context, order *Request) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cluster.CallTimeout)
	defer cancel()
	if err := r.cluster.Create(ctx, order); err != nil {
		r.unsent.Add(1)
		return
	}
	r.sent.Add(1)
}

// NewRequest chooses what is asked for.
func NewRequest(name string, pod *corev1.Pod, choice *rand.Rand) *Request {
	chance := func(percent int) bool { return choice.IntN(100) < percent }
	order := &Request{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: name}}
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

// Drain waits until every request has ended.
func (r *Requests) Drain(ctx context.Context, limit time.Duration) error {
	return cluster.Until(ctx, "end of all requests", limit, func(ctx context.Context) bool {
		open, err := r.open(ctx)
		return err == nil && len(open) == 0
	})
}

// open requests.
func (r *Requests) open(ctx context.Context) ([]string, error) {
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

// Touch writes to every request, so that the audit log holds what it looks like at the end.
func (r *Requests) Touch(ctx context.Context) error {
	var list v1beta1.ContainerRecreateRequestList
	if err := r.cluster.List(ctx, &list); err != nil {
		return fmt.Errorf("list requests: %w", err)
	}
	for i := range list.Items {
		order := &list.Items[i]
		before := order.DeepCopy()
		metav1.SetMetaDataAnnotation(&order.ObjectMeta, cluster.Label+"/last", "true")
		if err := r.cluster.Patch(ctx, order, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("look at request %s: %w", order.Name, err)
		}
	}
	return nil
}

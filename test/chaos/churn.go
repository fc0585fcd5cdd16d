package chaos

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/test/chaos/cluster"
	"github.com/refit-project/refit/test/chaos/history/entry"
	"github.com/refit-project/refit/test/chaos/load"
	"github.com/refit-project/refit/test/chaos/records"
)

// churn deletes pods and namespaces while requests for them are under way, and creates pods of the same name again.
func (r *run) churn(ctx context.Context) error {
	choice := r.choices()
	for n := 0; ; n++ {
		err := r.churnOnce(ctx, fmt.Sprintf("%s-churn-%d", cluster.Label, n), time.Duration(choice.Int64N(int64(1500*time.Millisecond))), n%2 == 0)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil { // as in an outage: the next one will do
			r.journal.Say("churn: %v", err)
		}
		if cluster.Pause(ctx, breather) != nil {
			return nil
		}
	}
}

func (r *run) churnOnce(ctx context.Context, namespace string, after time.Duration, withNamespace bool) error {
	if err := r.cluster.Namespace(ctx, namespace); err != nil {
		return err
	}
	choice := r.choices()
	pod := r.cluster.Pod(namespace, "twin", r.cluster.Nodes[0], cluster.Shapes[choice.IntN(len(cluster.Shapes))])
	if err := r.cluster.Start(ctx, pod); err != nil {
		return err
	}
	for n := range 3 {
		r.requests.Send(ctx, load.NewRequest(fmt.Sprintf("first-%d", n), pod, choice))
	}
	if err := cluster.Pause(ctx, after); err != nil {
		return err
	}
	begin := time.Now()
	if err := r.cluster.Remove(ctx, pod); err != nil {
		return err
	}
	if err := r.journal.Fault(entry.Fault{Kind: records.KindPodDelete, Detail: namespace, Begin: begin}); err != nil {
		return err
	}
	begin = time.Now()
	if err := r.cluster.Start(ctx, pod); err != nil {
		return err
	}
	if err := r.journal.Fault(entry.Fault{Kind: records.KindPodReplace, Detail: namespace, Begin: begin}); err != nil {
		return err
	}
	for n := range 3 {
		r.requests.Send(ctx, load.NewRequest(fmt.Sprintf("second-%d", n), pod, choice))
	}
	if !withNamespace {
		return nil
	}
	if err := cluster.Pause(ctx, after); err != nil {
		return err
	}
	begin = time.Now()
	gone := func(ctx context.Context) bool {
		err := r.cluster.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		return err != nil && client.IgnoreNotFound(err) == nil
	}
	if err := cluster.Until(ctx, "end of namespace "+namespace, cluster.RolloutTime, gone); err != nil {
		return err
	}
	return r.journal.Fault(entry.Fault{Kind: records.KindNamespaceDelete, Detail: namespace, Begin: begin})
}

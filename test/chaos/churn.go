package chaos

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/test/chaos/history"
)

// churn deletes pods and namespaces while requests for them are under way, and makes pods of the same name anew.
func (r *run) churn(ctx context.Context) error {
	choice := r.choices()
	for n := 0; ; n++ {
		err := r.churnOnce(ctx, fmt.Sprintf("%s-churn-%d", runLabel, n), time.Duration(choice.Int64N(int64(1500*time.Millisecond))), n%2 == 0)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil { // as in an outage: the next one will do
			r.journal.say("churn: %v", err)
		}
		if pause(ctx, breather) != nil {
			return nil
		}
	}
}

func (r *run) churnOnce(ctx context.Context, namespace string, after time.Duration, withNamespace bool) error {
	if err := r.namespace(ctx, namespace); err != nil {
		return err
	}
	choice := r.choices()
	pod := r.pod(namespace, "twin", r.cluster.nodes[0], shapes[choice.IntN(len(shapes))])
	if err := r.start(ctx, pod); err != nil {
		return err
	}
	for n := range 3 {
		r.send(ctx, newRequest(fmt.Sprintf("first-%d", n), pod, choice))
	}
	if err := pause(ctx, after); err != nil {
		return err
	}
	begin := time.Now()
	if err := r.remove(ctx, pod); err != nil {
		return err
	}
	if err := r.journal.fault(history.Fault{Kind: kindPodDelete, Detail: namespace, Begin: begin}); err != nil {
		return err
	}
	begin = time.Now()
	if err := r.start(ctx, pod); err != nil {
		return err
	}
	if err := r.journal.fault(history.Fault{Kind: kindPodReplace, Detail: namespace, Begin: begin}); err != nil {
		return err
	}
	for n := range 3 {
		r.send(ctx, newRequest(fmt.Sprintf("second-%d", n), pod, choice))
	}
	if !withNamespace {
		return nil
	}
	if err := pause(ctx, after); err != nil {
		return err
	}
	begin = time.Now()
	gone := func(ctx context.Context) bool {
		err := r.cluster.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		return err != nil && client.IgnoreNotFound(err) == nil
	}
	if err := until(ctx, "end of namespace "+namespace, rolloutTime, gone); err != nil {
		return err
	}
	return r.journal.fault(history.Fault{Kind: kindNamespaceDelete, Detail: namespace, Begin: begin})
}

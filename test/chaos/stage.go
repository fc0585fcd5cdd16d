package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/test/chaos/cluster"
	"github.com/refit-project/refit/test/chaos/load"
	"github.com/refit-project/refit/test/chaos/meetings"
	"github.com/refit-project/refit/test/chaos/records"
	"github.com/refit-project/refit/test/chaos/updates"
)

// endTime is what applications whose pods are deleted without grace may take to end.
const endTime = 30 * time.Second

// logs makes the folders for the applications' logs.
func (r *run) logs() error {
	for _, node := range r.cluster.Nodes {
		folder := r.cluster.Run(node, cluster.LogFolder)
		if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755), os.Chmod(folder, 0o777)); err != nil { // testapp is not root
			return fmt.Errorf("make folder of the logs: %w", err)
		}
	}
	return nil
}

// linkLogs keeps the logs of Refit's programs, whose pods the faults replace, until the context ends.
func (r *run) linkLogs(ctx context.Context) error {
	for cluster.Pause(ctx, time.Second) == nil {
		for _, node := range r.cluster.Nodes {
			for _, namespace := range []string{cluster.SystemNamespace, updates.Namespace} {
				if err := records.LinkLogs(r.Records, node, r.cluster.PodLogs(node), namespace); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// clear takes away what the run has made, as far as the cluster still answers.
func (r *run) clear(ctx context.Context) error {
	errs := []error{r.daemons.Restore(ctx), r.daemonsPresent(ctx)}
	if r.restoreCRDs != nil {
		errs = append(errs, r.restoreCRDs(ctx))
	}
	var namespaces corev1.NamespaceList
	errs = append(errs, r.cluster.List(ctx, &namespaces, client.HasLabels{cluster.Label}))
	for i := range namespaces.Items {
		namespace := &namespaces.Items[i]
		errs = append(errs,
			r.deletePods(ctx, client.InNamespace(namespace.Name), client.GracePeriodSeconds(0)),
			client.IgnoreNotFound(r.cluster.Delete(ctx, namespace)))
	}
	for _, object := range []client.Object{ghostNode(), ghostProbes(), load.SidecarSet(), meetings.Evicter()} {
		errs = append(errs, client.IgnoreNotFound(r.cluster.Delete(ctx, object)))
	}
	// A second manager.
	errs = append(errs, r.deletePods(ctx, client.InNamespace(cluster.SystemNamespace), client.HasLabels{cluster.Label}))
	for _, node := range r.cluster.Nodes {
		// The applications write into it until kubelet has stopped them.
		var err error
		late := cluster.Until(ctx, "remove logs", endTime, func(context.Context) bool {
			err = os.RemoveAll(r.cluster.Run(node, cluster.LogFolder))
			return err == nil
		})
		if late != nil {
			errs = append(errs, late, err)
		}
	}
	return errors.Join(errs...)
}

// deletePods tries again: a call for many pods may take longer than one that is made of a cluster in trouble may.
func (r *run) deletePods(ctx context.Context, options ...client.DeleteAllOfOption) error {
	var err error
	late := cluster.Until(ctx, "delete pods", endTime, func(ctx context.Context) bool {
		err = r.cluster.DeleteAllOf(ctx, &corev1.Pod{}, options...)
		return err == nil
	})
	if late != nil {
		return errors.Join(late, err)
	}
	return nil
}

// keepLogs copies what will be gone with the cluster to the other records.
func (r *run) keepLogs() error {
	errs := []error{records.KeepAudit(r.Records, r.cluster.AuditLog(), r.auditFrom)}
	for _, node := range r.cluster.Nodes {
		logs := r.cluster.Run(node, cluster.LogFolder)
		errs = append(errs, records.KeepSignals(r.Records, logs), records.KeepUpdates(r.Records, logs, cluster.UpdatesLog))
	}
	return errors.Join(errs...)
}

package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image/entry"
	"github.com/refit-project/refit/image/jobplan"
)

func (a *api) jobs(ctx context.Context, options ...client.ListOption) ([]v1beta1.ImagePullJob, error) {
	var list v1beta1.ImagePullJobList
	if err := a.client.List(ctx, &list, options...); err != nil {
		return nil, fmt.Errorf("list ImagePullJobs: %w", err)
	}
	return list.Items, nil
}

// activeJobs returns requests for all jobs that have not ended, the oldest first.
func (a *api) activeJobs(ctx context.Context, options ...client.ListOption) []ctrl.Request {
	list, err := a.jobs(ctx, append(options, client.UnsafeDisableDeepCopy)...) // they are not changed
	if err != nil {
		a.Logger.Error("ImagePullJobs of a NodeImage not listed", "err", err)
	}
	slices.SortFunc(list, func(a, b v1beta1.ImagePullJob) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	var requests []ctrl.Request
	for i := range list {
		if list[i].Status.CompletionTime == nil {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list[i])})
		}
	}
	return requests
}

// jobsOfNode enqueues only the jobs that are affected by a change of a NodeImage: with hundreds of jobs, whose pulls
// report progress all the time, enqueueing all jobs for each report would overload the manager.
func (a *api) jobsOfNode() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	all := func(ctx context.Context, q queue) {
		for _, request := range a.activeJobs(ctx) {
			q.Add(request)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, _ event.CreateEvent, q queue) { all(ctx, q) },
		DeleteFunc: func(ctx context.Context, _ event.DeleteEvent, q queue) { all(ctx, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, was := e.ObjectOld.(*v1beta1.NodeImage)
			after, is := e.ObjectNew.(*v1beta1.NodeImage)
			if !was || !is {
				return
			}
			owners, others := jobplan.Changed(before, after)
			if others {
				all(ctx, q)
			} else {
				for _, namespace := range entry.Freed(before, after) {
					for _, request := range a.activeJobs(ctx, client.InNamespace(namespace)) {
						q.Add(request)
					}
				}
			}
			for _, o := range owners {
				q.Add(ctrl.Request{NamespacedName: client.ObjectKey{Namespace: o.Namespace, Name: o.Name}})
			}
		},
	}
}

// copiesOfJob requests a cleanup of copies of pull secrets when a job has ended or is gone: once for all jobs that end
// within a second.
func (a *api) copiesOfJob() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	look := func(q queue) {
		q.AddAfter(ctrl.Request{NamespacedName: client.ObjectKey{Name: a.SecretNamespace}}, copiesDelay)
	}
	ended := func(object client.Object, q queue) {
		if job, ok := object.(*v1beta1.ImagePullJob); ok && (job.Status.CompletionTime != nil || job.DeletionTimestamp != nil) {
			look(q)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { ended(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { ended(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q queue) { look(q) },
	}
}

// jobsOfPod returns requests for the jobs that select nodes by pods like this one.
func (a *api) jobsOfPod(ctx context.Context, pod client.Object) []ctrl.Request {
	list, err := a.jobs(ctx, client.InNamespace(pod.GetNamespace()), client.UnsafeDisableDeepCopy)
	if err != nil {
		a.Logger.Error("ImagePullJobs of a pod not listed", "err", err)
	}
	var requests []ctrl.Request
	for i := range list {
		if list[i].Status.CompletionTime == nil && list[i].Spec.PodSelector != nil {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list[i])})
		}
	}
	return requests
}

// nodesOfJob returns requests for the NodeImages that name a job which has ended or is gone.
func (a *api) nodesOfJob(ctx context.Context, object client.Object) []ctrl.Request {
	job, ok := object.(*v1beta1.ImagePullJob)
	if !ok || (job.Status.CompletionTime == nil && job.DeletionTimestamp == nil) {
		// The event of a deleted job has its last version, without a deletion timestamp. So check whether the job still
		// exists.
		if err := a.client.Get(ctx, client.ObjectKeyFromObject(object), &v1beta1.ImagePullJob{}); !apierrors.IsNotFound(err) {
			return nil
		}
	}
	var list v1beta1.NodeImageList
	if err := a.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		a.Logger.Error("NodeImages of an ImagePullJob not listed", "err", err)
	}
	var requests []ctrl.Request
	for i := range list.Items {
		node := &list.Items[i]
		if names(node, object) || entry.Recorded(node, object.GetNamespace(), object.GetName(), object.GetUID()) {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(node)})
		}
	}
	return requests
}

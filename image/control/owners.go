package control

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image/entry"
)

// manyGone is the number of jobs of a namespace missing in the cache from which on they are listed instead of read one
// by one.
const manyGone = 16

// find looks up the jobs that a NodeImage names, and others on request. Only a live read is trusted to say that a job is
// gone, because caches are not synchronized with each other. unread returns why a job could not be looked up, or nil.
func (n *nodeImages) find(
	ctx context.Context, object *v1beta1.NodeImage,
) (find func(corev1.ObjectReference) *v1beta1.ImagePullJob, unread func() error, err error) {
	found, err := n.findMany(ctx, object)
	if err != nil {
		return nil, nil, err
	}
	var unreadErr error
	find = func(o corev1.ObjectReference) *v1beta1.ImagePullJob {
		if job, ok := found[o.UID]; ok {
			return job
		}
		job, err := read(ctx, n.client, o)
		if apierrors.IsNotFound(err) {
			job, err = read(ctx, n.Live, o)
		}
		switch {
		case apierrors.IsNotFound(err):
			job = nil
		case err != nil:
			unreadErr = fmt.Errorf("read ImagePullJob %s/%s: %w", o.Namespace, o.Name, err)
			job = &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{UID: o.UID}} // it may still exist
		}
		found[o.UID] = job
		return job
	}
	return find, func() error { return unreadErr }, nil
}

// findMany finds out which of the jobs that a NodeImage names are gone; these are nil in the result. It is used if the cache
// lacks many jobs of a namespace: after a thousand deletions, a separate read of each job would take a minute, during
// which none of their pulls would end.
func (n *nodeImages) findMany(ctx context.Context, object *v1beta1.NodeImage) (map[types.UID]*v1beta1.ImagePullJob, error) {
	found, missing := map[types.UID]*v1beta1.ImagePullJob{}, map[string][]types.UID{}
	for _, o := range entry.Owners(object) {
		switch job, err := read(ctx, n.client, o); {
		case err == nil:
			found[o.UID] = job
		case apierrors.IsNotFound(err):
			missing[o.Namespace] = append(missing[o.Namespace], o.UID)
		}
	}
	for namespace, jobs := range missing {
		if len(jobs) < manyGone {
			continue
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(v1beta1.GroupVersion().WithKind(v1beta1.KindImagePullJob + "List"))
		if err := n.Live.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("list ImagePullJobs of namespace %s: %w", namespace, err)
		}
		there := make(map[types.UID]bool, len(list.Items))
		for i := range list.Items {
			there[list.Items[i].UID] = true
		}
		for _, uid := range jobs {
			if !there[uid] {
				found[uid] = nil
			}
		}
	}
	return found, nil
}

// read reads the job of a reference. It returns a NotFound error if another job has its name.
func read(ctx context.Context, from client.Reader, o corev1.ObjectReference) (*v1beta1.ImagePullJob, error) {
	var job v1beta1.ImagePullJob
	if err := from.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, &job); err != nil {
		return nil, err
	}
	if job.UID != o.UID {
		return nil, apierrors.NewNotFound(v1beta1.GroupVersion().WithResource("imagepulljobs").GroupResource(), o.Name)
	}
	return &job, nil
}

// names reports whether an entry of a NodeImage names a job.
func names(object *v1beta1.NodeImage, job client.Object) bool {
	for _, i := range object.Spec.Images {
		for _, tag := range i.Tags {
			for _, o := range tag.OwnerReferences {
				if o.UID == job.GetUID() && o.Name == job.GetName() && o.Namespace == job.GetNamespace() {
					return true
				}
			}
		}
	}
	return false
}

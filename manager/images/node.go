package images

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/manager/cache"
)

// nodeImages keeps one NodeImage for each node with a host, with the node's labels, and removes from it what no job wants. The node
// owns it: one that is registered again under its name has none of the images that the NodeImage of the node before calls pulled.
type nodeImages struct{ *api }

// Reconcile implements reconcile.Reconciler.
func (n *nodeImages) Reconcile(ctx context.Context, key ctrl.Request) (ctrl.Result, error) {
	node, err := n.Nodes.Find(ctx, key.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	wanted := node != nil && node.DeletionTimestamp == nil && node.Labels[v1beta1.LabelType] != v1beta1.TypeVirtualKubelet
	var object v1beta1.NodeImage
	err = n.client.Get(ctx, key.NamespacedName, &object)
	switch {
	case apierrors.IsNotFound(err) && wanted:
		made := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels, OwnerReferences: own(nil, node)}}
		if err := n.client.Create(ctx, made); err != nil && !apierrors.IsAlreadyExists(err) {
			return ctrl.Result{}, fmt.Errorf("create NodeImage: %w", err)
		}
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, client.IgnoreNotFound(err)
	case object.Labels[v1beta1.LabelFakeNodeImage] != "" && node == nil:
		return ctrl.Result{}, nil
	case !wanted:
		return done(n.client.Delete(ctx, &object, client.Preconditions{UID: &object.UID}))
	case ofAnother(&object, node):
		return n.replace(ctx, &object)
	}
	var again time.Time
	// What was looked up holds for the next attempts too: the daemon writes the object while jobs are looked up.
	find := n.find(ctx)
	err = n.write(ctx, object.Name, func(object *v1beta1.NodeImage) bool {
		var prunes bool
		prunes, again = image.Prune(&object.Spec, &object.Status, find, n.Clock())
		owners := own(object.OwnerReferences, node)
		if !prunes && maps.Equal(object.Labels, node.Labels) && len(owners) == len(object.OwnerReferences) {
			return false
		}
		object.Labels, object.OwnerReferences = maps.Clone(node.Labels), owners
		return true
	})
	if err != nil {
		return done(err)
	}
	return n.later(again), nil
}

// own adds the node to the owners. A NodeImage that has no node among them, as of kruise-manager, is that of the node that is there.
func own(owners []metav1.OwnerReference, node *metav1.ObjectMeta) []metav1.OwnerReference {
	if slices.ContainsFunc(owners, isNode) {
		return owners
	}
	return append(slices.Clip(owners), metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID})
}

func isNode(owner metav1.OwnerReference) bool {
	return owner.APIVersion == "v1" && owner.Kind == "Node"
}

// ofAnother reports whether a NodeImage is that of another node of the same name.
func ofAnother(object *v1beta1.NodeImage, node *metav1.ObjectMeta) bool {
	return slices.ContainsFunc(object.OwnerReferences, func(owner metav1.OwnerReference) bool { return isNode(owner) && owner.UID != node.UID })
}

// replace deletes a NodeImage of another node than the cached one, unless it is the cache that has not seen the new node yet. The
// deletion is seen, and the next one made.
func (n *nodeImages) replace(ctx context.Context, object *v1beta1.NodeImage) (ctrl.Result, error) {
	live, err := cache.NewNodes(n.Live, n.Live).Find(ctx, object.Name)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case live == nil || !ofAnother(object, live):
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	n.Logger.Info("NodeImage of an earlier node deleted", "node", object.Name)
	return done(n.client.Delete(ctx, object, client.Preconditions{UID: &object.UID}))
}

// write changes the labels, the owners and the spec of a NodeImage. It is bound to the spec that the change is for and not to the whole
// object: the daemon writes the status at any time, and where the API server is slow each write would be a conflict, while
// images of deleted jobs go on to be pulled. After a conflict the object is read from the API server: the cache would be behind
// again. Writes of the manager wait for each other.
func (a *api) write(ctx context.Context, name string, change func(*v1beta1.NodeImage) bool) error {
	unlock, err := a.locks.lock(ctx, name)
	if err != nil {
		return fmt.Errorf("write NodeImage %s: %w", name, err)
	}
	defer unlock()
	reader := client.Reader(a.client)
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var object v1beta1.NodeImage
		if err := reader.Get(ctx, client.ObjectKey{Name: name}, &object); err != nil {
			return err
		}
		reader = a.Live
		before := object.DeepCopy()
		if !change(&object) {
			return nil
		}
		return a.patch(ctx, before, &object)
	})
	if err != nil {
		return fmt.Errorf("write NodeImage %s: %w", name, err)
	}
	return nil
}

// locks are one lock for each name.
type locks struct{ held sync.Map }

// lock waits until the name is free, or the context ends.
func (l *locks) lock(ctx context.Context, name string) (unlock func(), err error) {
	found, _ := l.held.LoadOrStore(name, make(chan struct{}, 1))
	held := found.(chan struct{})
	select {
	case held <- struct{}{}:
		return func() { <-held }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// find looks jobs up. That one is gone is accepted from a live read only, as caches are not in step.
func (n *nodeImages) find(ctx context.Context) func(corev1.ObjectReference) *v1beta1.ImagePullJob {
	found := map[types.UID]*v1beta1.ImagePullJob{}
	return func(o corev1.ObjectReference) *v1beta1.ImagePullJob {
		if job, ok := found[o.UID]; ok {
			return job
		}
		var job v1beta1.ImagePullJob
		key := client.ObjectKey{Namespace: o.Namespace, Name: o.Name}
		err := n.client.Get(ctx, key, &job)
		if apierrors.IsNotFound(err) || (err == nil && job.UID != o.UID) {
			err = n.Live.Get(ctx, key, &job)
		}
		switch {
		case apierrors.IsNotFound(err):
			found[o.UID] = nil
		case err != nil:
			found[o.UID] = &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{UID: o.UID}} // not known to be gone
		default:
			found[o.UID] = &job
		}
		return found[o.UID]
	}
}

// names reports whether a NodeImage names a job.
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

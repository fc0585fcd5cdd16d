package control

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image/entry"
	"github.com/refit-project/refit/internal/cache"
	"github.com/refit-project/refit/internal/conflict"
	"github.com/refit-project/refit/internal/recheck"
)

// nodeImages maintains one NodeImage, with the node's labels, for each node with a host, and removes entries that no
// job needs from it. The NodeImage is owned by its node: a node that is registered again under the same name has none
// of the images that the old NodeImage reports as pulled.
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
		made := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels, OwnerReferences: withOwner(nil, node)}}
		if err := n.client.Create(ctx, made); err != nil && !apierrors.IsAlreadyExists(err) {
			return ctrl.Result{}, fmt.Errorf("create NodeImage: %w", err)
		}
		return ctrl.Result{}, nil
	case apierrors.IsNotFound(err):
		n.writer.Forget(key.Name)
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, err
	case object.Labels[v1beta1.LabelFakeNodeImage] != "" && node == nil:
		return ctrl.Result{}, nil
	case !wanted:
		return done(n.client.Delete(ctx, &object, client.Preconditions{UID: &object.UID}))
	case ownedByOtherNode(&object, node):
		return n.replace(ctx, &object)
	}
	var again recheck.At
	// The lookups also apply to the next attempts: the daemon may write the object while jobs are looked up.
	find, unread, err := n.find(ctx, &object)
	if err != nil {
		return ctrl.Result{}, err
	}
	err = n.write(ctx, object.Name, func(object *v1beta1.NodeImage) bool {
		var prunes bool
		prunes, again = entry.Prune(object, find, n.Clock())
		owners := withOwner(object.OwnerReferences, node)
		if unread() != nil { // otherwise an unread job would look as if it requested nothing, and would lose its entry
			return false
		}
		if !prunes && maps.Equal(object.Labels, node.Labels) && len(owners) == len(object.OwnerReferences) {
			return false
		}
		object.Labels, object.OwnerReferences = maps.Clone(node.Labels), owners
		return true
	})
	if err == nil {
		err = unread()
	}
	if err != nil {
		return done(err)
	}
	return n.later(again), nil
}

// withOwner adds the node to the owners. A NodeImage without a node as owner, such as one of kruise-manager, belongs to
// the present node.
func withOwner(owners []metav1.OwnerReference, node *metav1.ObjectMeta) []metav1.OwnerReference {
	if slices.ContainsFunc(owners, isNode) {
		return owners
	}
	return append(slices.Clip(owners), metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID})
}

func isNode(owner metav1.OwnerReference) bool {
	return owner.APIVersion == "v1" && owner.Kind == "Node"
}

// ownedByOtherNode reports whether a NodeImage belongs to another node with the same name.
func ownedByOtherNode(object *v1beta1.NodeImage, node *metav1.ObjectMeta) bool {
	return slices.ContainsFunc(object.OwnerReferences, func(owner metav1.OwnerReference) bool { return isNode(owner) && owner.UID != node.UID })
}

// replace deletes a NodeImage that belongs to another node than the cached one, unless only the cache has not received
// the new node yet. The deletion causes an event, which leads to the creation of the next one.
func (n *nodeImages) replace(ctx context.Context, object *v1beta1.NodeImage) (ctrl.Result, error) {
	live, err := cache.NewNodes(n.Live, n.Live).Find(ctx, object.Name)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case live == nil || !ownedByOtherNode(object, live):
		return ctrl.Result{RequeueAfter: conflict.First}, nil
	}
	n.Logger.Info("NodeImage of an earlier node deleted", "node", object.Name)
	return done(n.client.Delete(ctx, object, client.Preconditions{UID: &object.UID}))
}

// write changes a NodeImage, see [nodewrite.Writer.Write].
func (a *api) write(ctx context.Context, name string, apply func(*v1beta1.NodeImage) bool) error {
	return a.writer.Write(ctx, a.client, a.Live, name, apply)
}

// Package history keeps the ControllerRevisions of SidecarSets: it creates that of the newest spec, and deletes those that are not
// needed any more. What they have in them is decided in package sidecarset/revision.
package history

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/revision"
)

// Keeper keeps ControllerRevisions.
type Keeper struct {
	Client    client.Client
	Live      client.Reader // the API server, past the cache
	Namespace string        // of the revisions
	// Written counts a write of controllerrevisions, and adds to its error what was being done.
	Written func(resource, doing string, err error) error
}

// Keep makes the newest ControllerRevision that of the spec, and returns its name and all revisions. Revisions beyond the limit
// of the SidecarSet are deleted unless they are used; nil deletes none.
func (r *Keeper) Keep(ctx context.Context, object *v1beta1.SidecarSet, used func(name string) bool) (latest string, history []*appsv1.ControllerRevision, err error) {
	if history, err = r.list(ctx, object); err != nil {
		return "", nil, err
	}
	newest, change, err := revision.Plan(object, r.Namespace, history)
	if err != nil {
		return "", nil, err
	}
	switch {
	case change.Create != nil:
		if newest, err = r.create(ctx, object, change.Create); err != nil {
			return "", nil, err
		}
		history = append(history, newest)
	case change.Update != nil:
		err := r.Written("controllerrevisions", "update ControllerRevision "+change.Update.Name, r.Client.Update(ctx, change.Update))
		if err != nil {
			return "", nil, err
		}
	}
	return newest.Name, history, r.expire(ctx, object, history, newest.Name, used)
}

func (r *Keeper) list(ctx context.Context, object *v1beta1.SidecarSet) ([]*appsv1.ControllerRevision, error) {
	var list appsv1.ControllerRevisionList
	err := r.Client.List(ctx, &list, client.InNamespace(r.Namespace), client.MatchingLabels{v1beta1.LabelSidecarSetName: object.Name})
	if err != nil {
		return nil, fmt.Errorf("list ControllerRevisions of SidecarSet %s: %w", object.Name, err)
	}
	var history []*appsv1.ControllerRevision
	for i := range list.Items {
		if owner := metav1.GetControllerOfNoCopy(&list.Items[i]); owner == nil || owner.UID == object.UID {
			history = append(history, &list.Items[i])
		}
	}
	return history, nil
}

// create creates it under another name if the name is taken by other data. The cache may lag behind: one of the same
// data that exists is taken.
func (r *Keeper) create(ctx context.Context, object *v1beta1.SidecarSet, wanted *appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	err := r.Written("controllerrevisions", "create ControllerRevision "+wanted.Name, r.Client.Create(ctx, wanted))
	if err == nil || !apierrors.IsAlreadyExists(err) {
		return wanted, err
	}
	existing := &appsv1.ControllerRevision{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(wanted), existing); err != nil {
		return nil, fmt.Errorf("get ControllerRevision %s: %w", wanted.Name, err)
	}
	if owner := metav1.GetControllerOfNoCopy(existing); owner != nil && owner.UID == object.UID {
		if _, change, err := revision.Plan(object, r.Namespace, []*appsv1.ControllerRevision{existing}); err == nil && change.Create == nil {
			return existing, nil
		}
	}
	count := int32(1)
	if object.Status.CollisionCount != nil {
		count += *object.Status.CollisionCount
	}
	object.Status.CollisionCount = &count // written with the status
	again, err := revision.New(object, r.Namespace, wanted.Revision)
	if err != nil {
		return nil, err
	}
	return again, r.Written("controllerrevisions", "create ControllerRevision "+again.Name, r.Client.Create(ctx, again))
}

// expire deletes revisions beyond the limit that nothing is of.
func (r *Keeper) expire(ctx context.Context, object *v1beta1.SidecarSet, history []*appsv1.ControllerRevision, latest string, used func(name string) bool) error {
	if used == nil {
		return nil // nothing is known of the pods yet
	}
	for _, expired := range revision.Expired(object, history, func(name string) bool { return name == latest || used(name) }) {
		err := r.Client.Delete(ctx, expired, client.Preconditions{UID: new(types.UID(expired.UID))})
		if err := r.Written("controllerrevisions", "delete ControllerRevision "+expired.Name, client.IgnoreNotFound(err)); err != nil {
			return err
		}
	}
	return nil
}

package rollout

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

// revisions makes the newest ControllerRevision that of the spec, and returns its name and all revisions.
func (r *reconciler) revisions(ctx context.Context, object *v1beta1.SidecarSet) (latest string, history []*appsv1.ControllerRevision, err error) {
	if history, err = r.listRevisions(ctx, object); err != nil {
		return "", nil, err
	}
	newest, change, err := revision.Plan(object, r.Namespace, history)
	if err != nil {
		return "", nil, err
	}
	switch {
	case change.Create != nil:
		if newest, err = r.createRevision(ctx, object, change.Create); err != nil {
			return "", nil, err
		}
		history = append(history, newest)
	case change.Update != nil:
		err := r.written("controllerrevisions", "update ControllerRevision "+change.Update.Name, r.client.Update(ctx, change.Update))
		if err != nil {
			return "", nil, err
		}
	}
	return newest.Name, history, r.expire(ctx, object, history, newest.Name)
}

func (r *reconciler) listRevisions(ctx context.Context, object *v1beta1.SidecarSet) ([]*appsv1.ControllerRevision, error) {
	var list appsv1.ControllerRevisionList
	err := r.client.List(ctx, &list, client.InNamespace(r.Namespace), client.MatchingLabels{v1beta1.LabelSidecarSetName: object.Name})
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

// createRevision creates it under another name if the name is taken by other data. The cache may lag behind: one of the same
// data that exists is taken.
func (r *reconciler) createRevision(ctx context.Context, object *v1beta1.SidecarSet, wanted *appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	err := r.written("controllerrevisions", "create ControllerRevision "+wanted.Name, r.client.Create(ctx, wanted))
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
	return again, r.written("controllerrevisions", "create ControllerRevision "+again.Name, r.client.Create(ctx, again))
}

// expire deletes revisions beyond the limit that no pod is of.
func (r *reconciler) expire(ctx context.Context, object *v1beta1.SidecarSet, history []*appsv1.ControllerRevision, latest string) error {
	used := map[string]bool{latest: true}
	if s := r.find(object.Name); s != nil {
		s.mu.Lock()
		for _, k := range s.known {
			used[k.revision] = true
		}
		s.mu.Unlock()
	} else {
		return nil // nothing is known of the pods yet
	}
	for _, expired := range revision.Expired(object, history, func(name string) bool { return used[name] }) {
		err := r.client.Delete(ctx, expired, client.Preconditions{UID: new(types.UID(expired.UID))})
		if err := r.written("controllerrevisions", "delete ControllerRevision "+expired.Name, client.IgnoreNotFound(err)); err != nil {
			return err
		}
	}
	return nil
}

// Package history keeps the ControllerRevisions of SidecarSets: it creates one for the newest spec, and deletes those
// that are not needed any more. Package sidecarset/revision decides what they contain.
package history

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/revision"
)

// Keeper creates and deletes ControllerRevisions.
type Keeper struct {
	Client    client.Client
	Live      client.Reader // reads from the API server and not from a cache
	Namespace string        // of the ControllerRevisions
	// OpenKruise is the namespace in which kruise-manager keeps its revisions; empty if Keeper should ignore them.
	OpenKruise string
	// Written counts a write of ControllerRevisions, and wraps its error with what was being done.
	Written func(resource, doing string, err error) error
	Logger  *slog.Logger
}

// Keep creates or updates the ControllerRevision of the spec as the newest one, and returns its name and all revisions.
// It deletes unused revisions beyond the limit of the SidecarSet; if used is nil, it deletes none. It makes the same
// changes in OpenKruise's namespace.
func (r *Keeper) Keep(ctx context.Context, object *v1beta1.SidecarSet, used func(name string) bool) (latest string, history []*appsv1.ControllerRevision, err error) {
	history, err = r.list(ctx, object, r.Namespace)
	var theirs []*appsv1.ControllerRevision
	if err == nil && r.OpenKruise != "" {
		theirs, err = r.list(ctx, object, r.OpenKruise)
	}
	if err == nil {
		history, err = r.adopt(ctx, object, history, theirs, used)
	}
	if err != nil {
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
		history[slices.IndexFunc(history, func(h *appsv1.ControllerRevision) bool { return h.Name == newest.Name })] = newest
	}
	history, err = r.expire(ctx, object, history, newest.Name, used)
	if err == nil {
		err = r.share(ctx, object, history, theirs)
	}
	return newest.Name, history, err
}

// list returns the revisions of the SidecarSet in one namespace. It only returns revisions without an owner if it is
// the manager's own namespace.
func (r *Keeper) list(ctx context.Context, object *v1beta1.SidecarSet, namespace string) ([]*appsv1.ControllerRevision, error) {
	var list appsv1.ControllerRevisionList
	err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{v1beta1.LabelSidecarSetName: object.Name})
	if err != nil {
		return nil, fmt.Errorf("list ControllerRevisions of SidecarSet %s: %w", object.Name, err)
	}
	var owned []*appsv1.ControllerRevision
	for i := range list.Items {
		owner := metav1.GetControllerOfNoCopy(&list.Items[i])
		if owner == nil && namespace == r.Namespace || owner != nil && owner.UID == object.UID {
			owned = append(owned, &list.Items[i])
		}
	}
	return owned, nil
}

// adopt copies revisions that OpenKruise has written, up to the limit, so that they remain when OpenKruise is removed.
// It also copies the numbers of revisions that OpenKruise has rolled back to.
func (r *Keeper) adopt(ctx context.Context, object *v1beta1.SidecarSet, own, theirs []*appsv1.ControllerRevision, used func(name string) bool) ([]*appsv1.ControllerRevision, error) {
	merged := revision.Merged(r.Namespace, slices.Concat(own, theirs))
	surplus := map[string]bool{}
	if used != nil {
		for _, expired := range revision.Expired(object, merged, used) {
			surplus[expired.Name] = true
		}
	}
	others := byName(theirs)
	var history []*appsv1.ControllerRevision
	for _, found := range merged {
		other := others[found.Name]
		switch {
		case found.Namespace != r.Namespace && surplus[found.Name]:
		case found.Namespace != r.Namespace:
			adopted := revision.Copy(object, r.Namespace, found)
			err := r.Written("controllerrevisions", "copy ControllerRevision "+found.Name, r.Client.Create(ctx, adopted))
			if err != nil && !apierrors.IsAlreadyExists(err) {
				return nil, err
			}
			history = append(history, adopted)
		case other != nil && other.Revision > found.Revision:
			found = revision.Follow(found, other)
			if err := r.Written("controllerrevisions", "update ControllerRevision "+found.Name, r.Client.Update(ctx, found)); err != nil {
				return nil, err
			}
			history = append(history, found)
		default:
			history = append(history, found)
		}
	}
	return history, nil
}

// share copies the kept revisions to OpenKruise's namespace, so that kruise-manager finds them after a migration back.
// Updates of pods continue if OpenKruise, or the permission in its namespace, has been removed.
func (r *Keeper) share(ctx context.Context, object *v1beta1.SidecarSet, kept, theirs []*appsv1.ControllerRevision) error {
	if r.OpenKruise == "" {
		return nil
	}
	others := byName(theirs)
	for _, own := range kept {
		doing, err := "", error(nil)
		if other := others[own.Name]; other == nil {
			doing, err = "copy", r.Client.Create(ctx, revision.Copy(object, r.OpenKruise, own))
			if apierrors.IsAlreadyExists(err) { // the cache lags behind, or the revision belongs to a deleted SidecarSet
				err = nil
			}
		} else if changed := revision.Follow(other, own); changed != nil { // patch, because the cache does not have all of its annotations
			doing, err = "update", r.Client.Patch(ctx, changed, client.MergeFrom(other))
		}
		delete(others, own.Name)
		if err := r.shared(doing, own.Name, err); err != nil {
			return err
		}
	}
	for name, expired := range others {
		err := r.Client.Delete(ctx, expired, client.Preconditions{UID: new(types.UID(expired.UID))})
		if err := r.shared("delete", name, client.IgnoreNotFound(err)); err != nil {
			return err
		}
	}
	return nil
}

// shared counts a write in OpenKruise's namespace; doing is empty if there was no write.
func (r *Keeper) shared(doing, name string, err error) error {
	if doing == "" {
		return nil
	}
	err = r.Written("controllerrevisions", doing+" ControllerRevision "+name+" in namespace "+r.OpenKruise, err)
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		r.Logger.Warn("kruise-manager would not find a revision", "revision", name, "err", err)
		return nil
	}
	return err
}

func byName(revisions []*appsv1.ControllerRevision) map[string]*appsv1.ControllerRevision {
	named := map[string]*appsv1.ControllerRevision{}
	for _, one := range revisions {
		named[one.Name] = one
	}
	return named
}

// create creates a revision, under another name if the name is taken by a revision with other data. The cache may lag
// behind: if a revision with the same data exists, create returns it.
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

// expire deletes unused revisions beyond the limit, and returns the others.
func (r *Keeper) expire(ctx context.Context, object *v1beta1.SidecarSet, history []*appsv1.ControllerRevision, latest string, used func(name string) bool) ([]*appsv1.ControllerRevision, error) {
	if used == nil {
		return history, nil // the pods have not been observed yet
	}
	for _, expired := range revision.Expired(object, history, func(name string) bool { return name == latest || used(name) }) {
		err := r.Client.Delete(ctx, expired, client.Preconditions{UID: new(types.UID(expired.UID))})
		if err := r.Written("controllerrevisions", "delete ControllerRevision "+expired.Name, client.IgnoreNotFound(err)); err != nil {
			return nil, err
		}
		history = slices.DeleteFunc(history, func(kept *appsv1.ControllerRevision) bool { return kept == expired })
	}
	return history, nil
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/sidecarset/defaults"
	"github.com/refit-project/refit/sidecarset/revision"
)

// Pause pauses the rollout of a SidecarSet, or resumes it. Updates of pods that have begun are completed.
func (c Config) Pause(ctx context.Context, out io.Writer, name string, paused bool) error {
	done, already := "resumed", "is not paused"
	if paused {
		done, already = "paused", "is paused already"
	}
	changed, err := c.change(ctx, name, func(set *v1beta1.SidecarSet) error {
		set.Spec.UpdateStrategy.Paused = paused
		return nil
	})
	if err != nil {
		return err
	}
	if !changed {
		done = already
	}
	_, err = fmt.Fprintf(out, "sidecarset/%s %s\n", name, done)
	return err
}

// change updates a SidecarSet, and retries after a conflict. It reports whether there was anything to change.
func (c Config) change(ctx context.Context, name string, how func(*v1beta1.SidecarSet) error) (changed bool, err error) {
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var set v1beta1.SidecarSet
		if err := c.API.Get(ctx, client.ObjectKey{Name: name}, &set); err != nil {
			return err
		}
		before := set.DeepCopy()
		if err := how(&set); err != nil {
			return err
		}
		if changed = !equality.Semantic.DeepEqual(before, &set); !changed {
			return nil
		}
		return c.API.Update(ctx, &set)
	})
	return changed, refused(err)
}

// refused marks errors of requests that the API server does not allow.
func refused(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return fmt.Errorf("%w: %w", console.ErrRefused, err)
	}
	return err
}

// Undo rolls a SidecarSet back to a revision, by its number; zero means the one before the latest. It restores the
// containers, volumes, metadata and custom version of that revision; the update strategy does not change.
func (c Config) Undo(ctx context.Context, out io.Writer, name string, to int64) error {
	var set v1beta1.SidecarSet
	if err := c.API.Get(ctx, client.ObjectKey{Name: name}, &set); err != nil {
		return refused(err)
	}
	history, err := c.history(ctx, &set)
	if err != nil {
		return refused(err)
	}
	latest := set.Status.LatestRevision
	if set.Status.ObservedGeneration != set.Generation { // the latest revision may belong to the previous spec, which is the one to restore
		newest, _, err := revision.Plan(&set, c.System, history)
		if err != nil {
			return err
		}
		latest = newest.Name
	}
	target, err := choose(history, latest, to)
	if err != nil {
		return fmt.Errorf("%w: SidecarSet %s: %w", console.ErrRefused, name, err)
	}
	restored, err := revision.Restore(target)
	if err != nil {
		return err
	}
	changed, err := c.change(ctx, name, func(set *v1beta1.SidecarSet) error {
		spec := set.Spec.DeepCopy()
		spec.Containers, spec.InitContainers, spec.Volumes = restored.Containers, restored.InitContainers, restored.Volumes
		spec.ImagePullSecrets, spec.PatchPodMetadata = restored.ImagePullSecrets, restored.PatchPodMetadata
		spec.PodVolumes, spec.PatchContainers = restored.PodVolumes, restored.PatchContainers
		if !equality.Semantic.DeepEqual(defaults.Normal(spec), defaults.Normal(&set.Spec)) {
			set.Spec = *spec
		}
		revision.SetCustomVersion(set, target.Labels[v1beta1.LabelSidecarSetCustomVersion])
		return nil
	})
	if err != nil {
		return err
	}
	done := "taken back to"
	if !changed {
		done = "is already as in"
	}
	_, err = fmt.Fprintf(out, "sidecarset/%s %s revision %d (%s)\n", name, done, target.Revision, target.Name)
	return err
}

// history returns the revisions of a SidecarSet, the oldest first.
func (c Config) history(ctx context.Context, set *v1beta1.SidecarSet) ([]*appsv1.ControllerRevision, error) {
	var list appsv1.ControllerRevisionList
	if err := c.API.List(ctx, &list, client.InNamespace(c.System), client.MatchingLabels{v1beta1.LabelSidecarSetName: set.Name}); err != nil {
		return nil, fmt.Errorf("list revisions in namespace %s: %w", c.System, err)
	}
	var history []*appsv1.ControllerRevision
	for i := range list.Items {
		if owner := metav1.GetControllerOfNoCopy(&list.Items[i]); owner == nil || owner.UID == set.UID {
			history = append(history, &list.Items[i])
		}
	}
	slices.SortFunc(history, func(a, b *appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	return history, nil
}

var (
	errNoRevision = errors.New("no such revision")
	errNoEarlier  = errors.New("there is no earlier revision")
)

// choose returns the revision with a number, or the newest one that is not the latest.
func choose(history []*appsv1.ControllerRevision, latest string, number int64) (*appsv1.ControllerRevision, error) {
	var numbers []string
	for _, one := range slices.Backward(history) {
		if number == one.Revision || number == 0 && one.Name != latest {
			return one, nil
		}
		numbers = append(numbers, fmt.Sprintf("%d (%s)", one.Revision, one.Name))
	}
	if number == 0 {
		return nil, errNoEarlier
	}
	return nil, fmt.Errorf("%w: %d; there are %s", errNoRevision, number, strings.Join(numbers, ", "))
}

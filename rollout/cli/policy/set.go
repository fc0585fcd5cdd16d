package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/must"
	"github.com/refit-project/refit/rollout/workload"
)

// Change changes a pod template as the user wants.
type Change func(*corev1.PodTemplateSpec) error

// SetConfig is the configuration of a change of a template.
type SetConfig struct {
	Config
	// Options of the policy; nil leaves a policy as it is. The policy keeps them for later updates.
	Options *Options
	// CreatePolicy creates a policy if the workload has none. Otherwise that is refused.
	CreatePolicy bool
	// AllowReplacement makes the change although pods have to be replaced for it. Otherwise that is refused.
	AllowReplacement bool
	// Wait waits for the end of the update, or for a pause that somebody has to end.
	Wait   bool
	DryRun bool
}

// Set changes the template of a workload, so that refit-manager updates its pods in place.
func Set(ctx context.Context, config SetConfig, target Target, change Change) error {
	ctx, cancel := config.limited(ctx)
	defer cancel()
	c, err := begin(ctx, config.Config, target)
	if err != nil {
		return console.Ended(ctx, err)
	}
	s := &setter{command: c, how: config}
	return console.Ended(ctx, s.set(ctx, change))
}

func (c Config) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.Timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, c.Timeout, fmt.Errorf("the update is %w", console.ErrTimeout))
}

type setter struct {
	*command

	how    SetConfig
	before *stored
	patch  []byte // of the workload
	// governs is the policy, and made says that the command has created it, or would.
	governs *v1alpha1.InPlaceUpdatePolicy
	made    bool
	// former is the merge patch that changes the policy back, after the command has changed it.
	former []byte
	// replaces says that the change is not possible in place, so that pods are replaced whether the workload is held or not.
	replaces bool
}

func (s *setter) set(ctx context.Context, change Change) error {
	before, err := s.read(ctx)
	if err != nil {
		return err
	}
	s.before = before
	if err := s.findPolicy(ctx); err != nil {
		return err
	}
	template := before.template().DeepCopy()
	if err := change(template); err != nil {
		return err
	}
	if s.patch, err = templatePatch(before, template); err != nil {
		return err
	}
	return s.write(ctx)
}

// write writes the patch of the template.
func (s *setter) write(ctx context.Context) error {
	if len(s.patch) == 0 {
		return s.unchanged(ctx)
	}
	if err := s.preview(ctx); err != nil || s.how.DryRun {
		return err
	}
	if err := s.writePolicy(ctx); err != nil {
		return err
	}
	if err := s.awaitHold(ctx); err != nil {
		if ctx.Err() != nil {
			err = console.Cause(ctx)
		}
		return errors.Join(err, s.takeBack(ctx))
	}
	changed, err := s.send(ctx)
	switch {
	case err != nil && (ctx.Err() != nil || console.Unreachable(err)):
		return s.unanswered(ctx, err)
	case err != nil:
		return errors.Join(err, s.takeBack(ctx))
	}
	s.Output.Say("%s: the template is changed", s.target)
	if !s.how.Wait {
		s.Output.Print("  follow it: kubectl refit rollout status %s --namespace=%s\n", s.target, s.Namespace)
		return nil
	}
	return console.Begun(s.follow(ctx, s.governs, s.before.with(changed), true))
}

// templatePatch returns the strategic merge patch of a workload for another template, as kubectl set sends it; nil if nothing changes.
func templatePatch(before *stored, template *corev1.PodTemplateSpec) ([]byte, error) {
	patch, err := strategicpatch.CreateTwoWayMergePatch(must.JSON(before.template()), must.JSON(template), corev1.PodTemplateSpec{})
	if err != nil {
		return nil, fmt.Errorf("compare templates: %w", err)
	}
	if string(patch) == "{}" {
		return nil, nil
	}
	return fmt.Appendf(nil, `{"spec":{"template":%s}}`, patch), nil
}

// send writes the workload, or sends a dry run, and returns what the API server has stored, or would.
func (s *setter) send(ctx context.Context, options ...client.PatchOption) (client.Object, error) {
	changed := s.before.object.DeepCopyObject().(client.Object)
	if err := s.API.Patch(ctx, changed, client.RawPatch(types.StrategicMergePatchType, s.patch), options...); err != nil {
		return nil, refused(fmt.Errorf("change %s: %w", s.target, err))
	}
	return changed, nil
}

// unanswered returns the error of a change of the template whose answer is lost. The policy stays: without it refit-manager would update
// all pods, whatever its steps are, or the workload would stay held.
func (s *setter) unanswered(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = console.Cause(ctx)
	}
	return fmt.Errorf("%w; it is not known whether the template of %s was changed, so InPlaceUpdatePolicy %s stays\n  follow it: kubectl refit rollout status %s --namespace=%s",
		err, s.target, s.governs.Name, s.target, s.Namespace)
}

// unchanged ends a change that the workload has already: its update may still be in progress.
func (s *setter) unchanged(ctx context.Context) error {
	s.Output.Say("%s unchanged: it has this template already", s.target)
	if err := s.keepOptions(ctx); err != nil {
		return err
	}
	if s.how.DryRun || s.made || !s.how.Wait {
		return nil
	}
	return s.follow(ctx, s.governs, s.before, true)
}

// preview prints what would happen, and returns an error if it is refused.
func (s *setter) preview(ctx context.Context) error {
	answer, err := s.send(ctx, client.DryRunAll)
	if err != nil {
		return err
	}
	pods, err := s.pods(ctx, s.before)
	if err != nil {
		return err
	}
	after := s.before.with(answer)
	w, err := after.workload()
	if err != nil {
		return fmt.Errorf("read %s: %w", s.target, err)
	}
	now, err := s.before.workload()
	if err != nil {
		return fmt.Errorf("read %s: %w", s.target, err)
	}
	if err := s.mayUpdate(now); err != nil {
		return err
	}
	shown := workload.NewPreview(s.governs, w, pods, time.Now())
	if s.how.DryRun {
		if err := s.tryPolicy(ctx); err != nil {
			return err
		}
		s.Output.Print("%s: dry run, nothing is changed\n", s.target)
		s.sayPolicy("would be ")
		if err := s.printPods(&shown); err != nil {
			return err
		}
	} else {
		s.printEffects(&shown)
	}
	s.replaces = shown.Refused != nil
	return s.possible(&shown)
}

// mayUpdate returns an error if refit-manager would update no pods of the workload, or if only its owner can prevent their replacement.
func (s *setter) mayUpdate(w *workload.Workload) error {
	byOwner := s.governs.Spec.HoldPolicy == v1alpha1.HoldByOwner
	if byOwner && !w.OwnerHolds && !w.Held && !s.how.AllowReplacement {
		how := "pause it: kubectl rollout pause " + s.target.String() + " --namespace=" + s.Namespace
		if w.Kind != "Deployment" {
			how = "change its updateStrategy to OnDelete"
		}
		return fmt.Errorf("%w: the pods of %s would be replaced, since InPlaceUpdatePolicy %s has holdPolicy ByOwner and its owner does not hold it; %s",
			console.ErrRefused, s.target, s.governs.Name, how)
	}
	if !w.OwnerHolds || byOwner {
		return nil
	}
	how := "its owner has paused it: kubectl rollout resume " + s.target.String() + " --namespace=" + s.Namespace
	if w.Kind != "Deployment" {
		how = "its updateStrategy is OnDelete: change it to RollingUpdate"
	}
	return fmt.Errorf("%w: the pods of %s are not updated, since %s; or use an InPlaceUpdatePolicy with holdPolicy ByOwner", console.ErrRefused, s.target, how)
}

// possible returns an error if pods would have to be replaced and that is not allowed. The controller of the workload does not replace
// a single pod that cannot be updated in place.
func (s *setter) possible(shown *workload.Preview) error {
	var why, pods []string
	switch {
	case shown.Replacing != "":
		why = []string{shown.Replacing + ", which ends first: kubectl rollout status " + s.target.String() + " --namespace=" + s.Namespace}
	case shown.Refused != nil:
		why = reasons(shown.Refused)
	default:
		for _, pod := range shown.Pods {
			if pod.Refused != nil {
				pods = append(pods, pod.Name)
				why = append(why, fmt.Sprintf("pod %s: %s", pod.Name, strings.Join(reasons(pod.Refused), "; ")))
			}
		}
	}
	switch {
	case len(why) == 0:
		return nil
	case s.governs.Spec.PodUpdatePolicy == v1alpha1.PodUpdateInPlaceOnly:
		return fmt.Errorf("%w: not possible in place, and InPlaceUpdatePolicy %s has podUpdatePolicy InPlaceOnly: %s", console.ErrRefused, s.governs.Name, strings.Join(why, "; "))
	case !s.how.AllowReplacement && len(pods) > 0:
		return fmt.Errorf("%w: not possible in place: %s; the workload creates others: kubectl delete pod %s --namespace=%s",
			console.ErrRefused, strings.Join(why, "; "), strings.Join(pods, " "), s.Namespace)
	case !s.how.AllowReplacement:
		return fmt.Errorf("%w: not possible in place: %s; with --allow-replacement the template is changed, and the pods are replaced", console.ErrRefused, strings.Join(why, "; "))
	}
	return nil
}

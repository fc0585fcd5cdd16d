package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/rollout/cli/follow"
)

// follower follows one update.
type follower struct {
	*command

	live *live
	// generation of the workload whose template is followed.
	generation int64
	// revision names that template, since refit-manager has seen it.
	revision string
	// own says that the command has written the template: another one supersedes it.
	own     bool
	verdict verdict
	why     string
	told    map[string]bool
	silent  console.Silent
}

// errSuperseded means that somebody else has changed the template.
var errSuperseded = errors.New("superseded by another change of the template")

// follow prints the progress of the update to the template of a workload until it has ended. If own, it ends also when the
// template is changed again, and at a pause that somebody has to end.
func (c *command) follow(ctx context.Context, policy *v1alpha1.InPlaceUpdatePolicy, of *stored, own bool) error {
	f := &follower{command: c, live: newLive(c, of), generation: of.object.GetGeneration(), own: own, told: map[string]bool{}, silent: c.silent()}
	f.live.start(ctx)
	defer f.live.stop(ctx)
	_, err := follow.Object(ctx, c.API, &v1alpha1.InPlaceUpdatePolicyList{}, policy, func(p *v1alpha1.InPlaceUpdatePolicy) bool {
		policy = p.DeepCopy()
		return f.see(policy)
	}, func(err error) { f.silent.Tick(seen(policy, f.generation), err) })
	f.live.stop(ctx)
	switch {
	case ctx.Err() != nil:
		return c.interrupted(ctx, f.why)
	case errors.Is(err, follow.ErrDeleted):
		return fmt.Errorf("%w: InPlaceUpdatePolicy %s has been deleted, so that nothing is known of the update: kubectl get %s --namespace=%s", console.ErrFailed, policy.Name, c.target, c.Namespace)
	case err != nil:
		return err
	}
	return f.end(policy)
}

// silent prints that nothing processes the policy.
func (c *command) silent() console.Silent {
	return console.Silent{Output: c.Output, Kind: "InPlaceUpdatePolicies", Feature: "inPlaceUpdates"}
}

// see looks at a version of the policy, and reports whether the command has ended.
func (f *follower) see(policy *v1alpha1.InPlaceUpdatePolicy) bool {
	f.verdict, f.why = judge(policy, f.generation)
	if !seen(policy, f.generation) {
		f.live.progress(f.why, f.ended(policy))
		return f.ended(policy)
	}
	for _, failure := range policy.Status.Failures {
		if key := failure.Pod + failure.Reason; !f.told[key] {
			f.told[key] = true
			f.Output.Say("pod %s: %s: %s", failure.Pod, failure.Reason, failure.Message)
		}
	}
	if f.revision == "" {
		f.revision = policy.Status.UpdateRevision
	}
	f.live.see(policy)
	f.live.progress(f.bar(policy), f.ended(policy))
	if hint := advice(policy, f.target); hint != "" && f.verdict != verdictFailed && !f.told[hint] && !f.ended(policy) {
		f.told[hint] = true
		f.Output.Say("it does not continue by itself\n  %s", hint)
	}
	return f.ended(policy)
}

// bar returns the line below the table.
func (f *follower) bar(policy *v1alpha1.InPlaceUpdatePolicy) string {
	if f.verdict == verdictDone { // the last line says why
		return bar(policy, "")
	}
	return bar(policy, f.why)
}

// ended reports whether the command has ended.
func (f *follower) ended(policy *v1alpha1.InPlaceUpdatePolicy) bool {
	switch f.verdict {
	case verdictDone, verdictFailed, verdictPartitioned:
		return true
	case verdictPausing:
		return f.own
	}
	return f.own && (f.superseded(policy) || f.undone(policy))
}

// superseded reports whether the template is another one.
func (f *follower) superseded(policy *v1alpha1.InPlaceUpdatePolicy) bool {
	return f.revision != "" && policy.Status.UpdateRevision != f.revision
}

// undone reports whether the template has failed, and the former one was written.
func (f *follower) undone(policy *v1alpha1.InPlaceUpdatePolicy) bool {
	return f.revision != "" && policy.Status.UndoneRevision == f.revision
}

// end prints the result, and returns the error of the command.
func (f *follower) end(policy *v1alpha1.InPlaceUpdatePolicy) error {
	hint := ""
	if text := advice(policy, f.target); text != "" {
		hint = "\n  " + text
	}
	status := &policy.Status
	switch {
	case f.own && f.undone(policy):
		return fmt.Errorf("%w: pods have failed with the template, and the former one was written to %s (failurePolicy Undo)\n  follow it: kubectl refit rollout status %s --namespace=%s",
			console.ErrFailed, f.target, f.target, f.Namespace)
	case f.own && f.superseded(policy):
		return fmt.Errorf("%w: %w of %s\n  follow it: kubectl refit rollout status %s --namespace=%s", console.ErrFailed, errSuperseded, f.target, f.target, f.Namespace)
	case f.verdict == verdictFailed:
		return fmt.Errorf("%w: %s: %s%s", console.ErrFailed, f.target, f.why, hint)
	case f.verdict == verdictPausing:
		f.Output.Say("%s: %s; the update pauses\n  %s", f.target, done(status), strings.TrimPrefix(hint, "\n  "))
	case f.verdict == verdictPartitioned:
		f.Output.Say("%s: %s; %s", f.target, done(status), f.why)
	default:
		f.Output.Say("%s: %s", f.target, done(status))
	}
	return nil
}

// done says how many pods have the template and are available, and how many of the workload's pods are new ones.
func done(status *v1alpha1.InPlaceUpdatePolicyStatus) string {
	return fmt.Sprintf("%d of %d pods have the template and are available%s", status.UpdatedReadyPods, status.MatchedPods, recreated(status))
}

// recreated returns the part of a message about pods that were created with the template instead of being updated in place to it.
func recreated(status *v1alpha1.InPlaceUpdatePolicyStatus) string {
	if status.RecreatedPods == 0 {
		return ""
	}
	return fmt.Sprintf(", %d recreated", status.RecreatedPods)
}

// interrupted returns the error of a wait that ends before the update.
func (c *command) interrupted(ctx context.Context, last string) error {
	if last == "" {
		last = "nothing"
	}
	return fmt.Errorf("%w; the update continues\n  last:      %s\n  follow it: kubectl refit rollout status %s --namespace=%s\n  pause it:  kubectl refit rollout pause %s --namespace=%s",
		console.Cause(ctx), last, c.target, c.Namespace, c.target, c.Namespace)
}

// bar returns a progress bar and the counts of an update, and why it is not further.
func bar(policy *v1alpha1.InPlaceUpdatePolicy, why string) string {
	const width = 20
	status, filled := &policy.Status, 0
	if status.MatchedPods > 0 {
		filled = int(min(status.UpdatedReadyPods, status.MatchedPods)) * width / int(status.MatchedPods)
	}
	if why != "" {
		why = ": " + why
	}
	return fmt.Sprintf("[%s%s] %d of %d pods updated and ready, %d being updated%s, %d failed%s", strings.Repeat("#", filled), strings.Repeat("-", width-filled),
		status.UpdatedReadyPods, status.MatchedPods, status.UpdatingPods, recreated(status), status.FailedPods, why)
}

package update

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/kube/ownpod"
	"github.com/refit-project/refit/sidecarmode/update/record"
	"github.com/refit-project/refit/wait"
)

const (
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
	// lastRead is the longest pause before the record is read again: updates are answered 503 until then.
	lastRead = 5 * time.Second
	// forbiddenTries is how often in a row 403 is answered, in 3 s, before it counts as a missing role: an API server that
	// has just started may not have read the roles.
	forbiddenTries = 3
)

// restore takes the folder over and brings it to what the workload accepted last, unless the volume still has what this
// pod accepted: then the API is not asked. The files are put in place without telling anybody, for the program may not
// have been started yet; if it runs by then it is told. Nothing but a folder that cannot be used is an error.
func (p *Plugin) restore(ctx context.Context, by time.Time) (*hotupdate.Updater, error) {
	deadline, cancel := context.WithDeadline(ctx, by)
	defer cancel()
	began := time.Now()
	u, err := hotupdate.Open(ctx, p.updater)
	if err != nil {
		return nil, err
	}
	version, restored, fault := p.restoreFiles(deadline, u)
	if ctx.Err() != nil {
		u.Close()
		return nil, nil //nolint:nilnil // the end
	}
	switch {
	case fault != nil || len(p.updater.Reload) == 0:
	case restored || u.Interrupted():
		fault = p.reloadProgram(deadline, u)
	case u.Untold(): // the sidecar before this one has ended in between
		p.untold <- version
	}
	p.setNote("")
	switch {
	case fault != nil:
		p.setNote("restore: " + fault.Error())
		p.conclude(version, began, hotupdate.Result{}, fmt.Errorf("restore: %w", fault))
	case restored:
		if current, err := currentOf(u); err == nil {
			p.conclude(version, began, hotupdate.Result{Revision: current, Changed: true}, nil)
		}
	}
	return u, nil
}

// restoreFiles applies what the record has. It reports the version and whether something changed.
func (p *Plugin) restoreFiles(ctx context.Context, u *hotupdate.Updater) (version string, changed bool, err error) {
	current, err := currentOf(u)
	if err != nil {
		return hotupdate.InitialVersion, false, err
	}
	if !current.Unrequested() {
		return current.Version, false, nil // this pod's own, from before a restart of the container
	}
	var wanted record.Revision
	var found bool
	err = p.retry(ctx, "read what the workload has accepted", lastRead, func() (err error) {
		wanted, found, err = p.record.Latest(ctx)
		return err
	})
	switch {
	case err != nil:
		return current.Version, false, err
	case !found:
		return current.Version, false, nil
	case wanted.Partial:
		return wanted.Version, false, fmt.Errorf("some of its files cannot be downloaded again: %s", wanted.Reason)
	}
	request := wanted.Request()
	request.Keep = current.Version != hotupdate.InitialVersion // files of triggers
	request.Quiet, request.TellLater = true, len(p.updater.Reload) > 0 && !p.beforeProgram()
	var res hotupdate.Result
	err = p.retry(ctx, "restore "+wanted.Version, lastRetry, func() (err error) {
		res, err = u.Apply(ctx, request)
		return err
	})
	return wanted.Version, res.Changed, err
}

// retry repeats what may succeed later, with growing pauses of at most longest, until ctx ends.
func (p *Plugin) retry(ctx context.Context, doing string, longest time.Duration, try func() error) error {
	attempts := attempts{longest: longest}
	for {
		err := try()
		if err == nil || attempts.hopeless(err) {
			return err
		}
		p.host.Logger.Warn("failed, will be tried again", "doing", doing, "err", err)
		p.setNote(doing + ": " + err.Error())
		if wait.For(ctx, attempts.pause) != nil {
			return err
		}
	}
}

// attempts are those that have failed.
type attempts struct {
	longest time.Duration // of the pauses
	pause   time.Duration // before the next
	refused int           // how often in a row 403 was answered
}

// hopeless reports whether another attempt is of no use after this error.
func (a *attempts) hopeless(err error) bool {
	a.pause = min(max(a.pause*2, firstRetry), a.longest)
	if !errors.Is(err, ownpod.ErrForbidden) {
		a.refused = 0
		return permanent(err)
	}
	if a.refused++; a.refused == 1 {
		a.pause = firstRetry // the API server responds; an outage before may have made the pause long
	}
	return a.refused >= forbiddenTries
}

// permanent errors stay as they are however often it is tried.
func permanent(err error) bool {
	for _, kind := range []error{
		ownpod.ErrForbidden, hotupdate.ErrInvalid, hotupdate.ErrRefused, hotupdate.ErrDigest, hotupdate.ErrSignature,
		hotupdate.ErrTooLarge, hotupdate.ErrArchive, hotupdate.ErrPrecheck, record.ErrDamaged,
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// reloadProgram waits for the program and reloads it: one that started after the files were in place has read them, but
// which it was cannot be known. A signal is sent when the program has a handler for it, see steps. A program that cannot have been started yet is not
// waited for: it waits for us.
func (p *Plugin) reloadProgram(ctx context.Context, u *hotupdate.Updater) error {
	if p.beforeProgram() {
		return nil
	}
	if err := p.awaitProgram(ctx); err != nil {
		return fmt.Errorf("the process has not been started: %w", err)
	}
	if p.beforeProgram() {
		return nil
	}
	return u.Reload(ctx)
}

func (p *Plugin) beforeProgram() bool { return beforeProgram(p.host.Observed(), p.host.Own) }

// beforeProgram reports that kubelet starts none of the pod's regular containers before we are ready: we are a
// native sidecar whose start-up probe asks whether we are, and it has not succeeded yet (KEP-753).
func beforeProgram(pod *corev1.Pod, own string) bool {
	if pod == nil {
		return false
	}
	gates := slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == own && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways &&
			c.StartupProbe != nil && c.StartupProbe.HTTPGet != nil && c.StartupProbe.HTTPGet.Path == "/readyz"
	})
	started := slices.ContainsFunc(pod.Status.InitContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.Name == own && s.Started != nil && *s.Started
	})
	// After a restart of the sidecar alone the program runs on.
	runs := slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.State.Running != nil })
	return gates && !started && !runs
}

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
	"github.com/refit-project/refit/sidecarmode/process"
)

const (
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
	// lookAgain is between looks for the program's process.
	lookAgain = 500 * time.Millisecond
)

// restore takes the folder over and brings it to what the workload accepted last, unless the volume still has
// what this pod accepted. The files are put in place without telling anybody, for the program may not have been
// started yet; if it runs by the deadline it is told. Nothing but a folder that cannot be used is an error.
func (p *Plugin) restore(ctx context.Context) (*hotupdate.Updater, error) {
	deadline, cancel := context.WithTimeout(ctx, p.config.wait())
	defer cancel()
	began := time.Now()
	quiet := p.updater
	quiet.Reload, quiet.Verify = nil, hotupdate.Verification{}
	u, err := hotupdate.Open(quiet)
	if err != nil {
		return nil, err
	}
	interrupted := u.Interrupted()
	version, restored, fault := p.bring(deadline, u)
	u.Close()
	if ctx.Err() != nil {
		return nil, nil //nolint:nilnil // the end
	}
	if u, err = hotupdate.Open(p.updater); err != nil {
		return nil, err
	}
	if fault == nil && (restored || interrupted) && len(p.updater.Reload) > 0 {
		fault = p.tell(deadline, u)
	}
	switch {
	case fault != nil:
		p.say("restore: " + fault.Error())
		p.conclude(version, began, hotupdate.Result{}, fmt.Errorf("restore: %w", fault))
	case restored:
		p.say("")
		current, err := currentOf(u)
		if err == nil {
			p.conclude(version, began, hotupdate.Result{Revision: current, Changed: true}, nil)
		}
	default:
		p.say("")
	}
	return u, nil
}

// bring applies what is remembered. It reports the version and whether something changed.
func (p *Plugin) bring(ctx context.Context, u *hotupdate.Updater) (version string, changed bool, err error) {
	version = hotupdate.InitialVersion
	current, err := currentOf(u)
	if err != nil {
		return version, false, err
	}
	var wanted remembered
	var found bool
	err = p.persist(ctx, "read what was accepted", func() (err error) {
		wanted, found, err = p.memory.recall(ctx)
		return err
	})
	p.memory.current = wanted
	if current.Version != hotupdate.InitialVersion {
		return current.Version, false, nil // this pod's own, from before a restart of the container
	}
	switch {
	case err != nil || !found:
		return version, false, err
	case wanted.Partial:
		return wanted.Version, false, errors.New("some of its content came with a request and cannot be had again")
	case wanted.Digest != "" && wanted.Digest == current.Digest:
		return wanted.Version, false, nil
	}
	var res hotupdate.Result
	err = p.persist(ctx, "restore "+wanted.Version, func() (err error) {
		res, err = u.Apply(ctx, wanted.request())
		return err
	})
	return wanted.Version, res.Changed, err
}

// persist repeats what may succeed later, until ctx ends.
func (p *Plugin) persist(ctx context.Context, doing string, try func() error) error {
	pause := firstRetry
	for {
		err := try()
		if err == nil || hopeless(err) {
			return err
		}
		p.host.Logger.Warn("will be tried again", "doing", doing, "err", err)
		p.say(doing + ": " + err.Error())
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C:
		}
		pause = min(pause*2, lastRetry)
	}
}

// hopeless errors stay as they are however often it is tried.
func hopeless(err error) bool {
	for _, kind := range []error{
		ownpod.ErrForbidden, hotupdate.ErrInvalid, hotupdate.ErrRefused, hotupdate.ErrDigest, hotupdate.ErrSignature, hotupdate.ErrTooLarge, hotupdate.ErrArchive, hotupdate.ErrPrecheck,
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// tell waits for the program and reloads it: one that started after the files were in place has read them, but
// which it was cannot be known, and to be told once more does no harm. A program that cannot have been started yet
// need not be told; to wait for it would be to wait for ourselves.
func (p *Plugin) tell(ctx context.Context, u *hotupdate.Updater) error {
	if beforeProgram(p.host.Observed(), p.host.Own) {
		return nil
	}
	for _, finder := range p.finders() {
		for finder.FS != nil {
			_, err := finder.Find(ctx)
			if err == nil {
				break
			}
			if beforeProgram(p.host.Observed(), p.host.Own) {
				return nil
			}
			p.say("waiting for the process: " + err.Error())
			timer := time.NewTimer(lookAgain)
			select {
			case <-ctx.Done():
				timer.Stop()
				return fmt.Errorf("the process has not come: %w", err)
			case <-timer.C:
			}
		}
	}
	return u.Reload(ctx)
}

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

// finders are those of the processes that are signalled.
func (p *Plugin) finders() []process.Finder {
	chain, err := p.config.chain()
	if err != nil {
		return nil
	}
	var finders []process.Finder
	for _, a := range chain {
		if a.Signal != nil {
			finders = append(finders, process.Finder{Config: a.Signal.Config, FS: p.host.Processes, Observed: p.host.Observed})
		}
	}
	return finders
}

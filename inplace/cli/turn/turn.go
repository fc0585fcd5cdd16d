package turn

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/must"
	"github.com/refit-project/refit/rollout/budget"
	"github.com/refit-project/refit/rollout/turn"
)

const (
	// pause is the interval between checks.
	pause = 2 * time.Second
	// renewBefore is how long before its end a claim is renewed.
	renewBefore = budget.ClaimFor / 2
	// releaseTimeout limits the removal of a claim, also when the process is interrupted.
	releaseTimeout = 5 * time.Second
)

// Config configures which pods a process may make unavailable. API reads from the API server, not from a cache.
type Config struct {
	API client.Client
	// By is the unique name of the process.
	By string
	// MaxUnavailable is how many pods of the pod's controller may be unavailable.
	MaxUnavailable intstr.IntOrString
	// IgnorePodDisruptionBudgets says not to respect PodDisruptionBudgets.
	IgnorePodDisruptionBudgets bool
	// Clock returns the API server's time.
	Clock func() time.Time
	// Say is called with what the process waits for, whenever that changes.
	Say func(string)
}

// Requests reports whether the cluster serves ContainerRecreateRequests. If it does not, there are none to list, and
// few users have the right to list them. It returns true if it cannot find out.
func (c *Config) Requests() bool {
	_, err := c.API.RESTMapper().RESTMapping(v1beta1.GroupVersion().WithKind("ContainerRecreateRequest").GroupKind(), v1beta1.GroupVersion().Version)
	return !meta.IsNoMatchError(err)
}

// Take waits until the pod may become unavailable, or ctx ends. Then the caller must make it unavailable at once: the
// claim only lasts for budget.ClaimFor, and after that only the state of the pod itself counts. release removes the
// claim; the caller must always call it, and it does nothing if there is no claim.
//
// If another process has the turn with the same pod, Take returns without a claim, because the pod is already being
// changed. Then the caller may only write to a version of the pod that is Held, because the other process may end at
// any moment.
func Take(ctx context.Context, cfg Config, pod *corev1.Pod) (release func(context.Context), err error) {
	w := &waiter{Config: cfg, key: client.ObjectKeyFromObject(pod), uid: pod.UID, claim: budget.NewClaim(cfg.By, cfg.Clock())}
	if err := w.wait(ctx); err != nil {
		w.release(ctx)
		return func(context.Context) {}, err
	}
	return w.release, nil
}

// Forecast returns what a process would have to wait for now, or "" for nothing. It writes nothing.
func Forecast(ctx context.Context, cfg Config, pod *corev1.Pod) (reason string, err error) {
	w := &waiter{Config: cfg, key: client.ObjectKeyFromObject(pod), uid: pod.UID, claim: budget.NewClaim(cfg.By, cfg.Clock()), forecasts: true}
	decision, err := w.look(ctx)
	if err != nil || decision.Hold == "" {
		return "", err
	}
	return w.reason(decision), nil
}

// waiter is a process that waits for its turn.
type waiter struct {
	Config
	key   client.ObjectKey
	uid   types.UID
	claim budget.Claim
	said  string
	// forecasts says to decide as if the claim were on the pod.
	forecasts bool
}

var (
	// errTaken means that another process waits for its turn with the same pod.
	errTaken = errors.New("another process waits to take out the same pod")
	// errHeld means that another process has the turn with the same pod.
	errHeld = errors.New("another process takes out the same pod")
)

// Held reports whether any process has the turn with the pod. The pod then counts as being changed for all processes.
func Held(pod *corev1.Pod, now time.Time) bool {
	claim := budget.ClaimOn(pod, now)
	return claim != nil && claim.Holding
}

func (w *waiter) wait(ctx context.Context) error {
	for {
		goes, err := w.step(ctx)
		if err != nil || goes {
			return err
		}
		if err := sleep(ctx); err != nil {
			return err
		}
	}
}

// step writes the claim, decides, and writes what it has decided. It reports whether the process may proceed.
func (w *waiter) step(ctx context.Context) (goes bool, err error) {
	for {
		err := w.announce(ctx)
		switch {
		case apierrors.IsConflict(err): // the pod has changed meanwhile
			return false, nil
		case errors.Is(err, errHeld):
			return true, nil
		case errors.Is(err, errTaken):
			w.say(fmt.Sprintf("pod %s waits: %v", w.key.Name, err))
			return false, nil
		case err != nil:
			return false, err
		}
		decision, err := w.look(ctx)
		if err != nil || decision.Step == turn.Go {
			return err == nil, err
		}
		if decision.Hold != "" {
			w.say(w.reason(decision))
		}
		if w.claim.Holding = decision.Step == turn.Hold; decision.Step == turn.Wait {
			return false, nil
		}
	}
}

// reason returns what the process waits for.
func (w *waiter) reason(decision turn.Decision) string {
	if decision.Hold == budget.HoldDisruption {
		return fmt.Sprintf("pod %s waits: PodDisruptionBudget %s allows no more disruptions", w.key.Name, decision.By)
	}
	return fmt.Sprintf("pod %s waits: as many pods of its workload are unavailable, or being updated, as may be (%s)", w.key.Name, w.MaxUnavailable.String())
}

func (w *waiter) say(what string) {
	if w.Say != nil && what != w.said {
		w.said = what
		w.Say(what)
	}
}

// announce writes the claim unless the pod already has it for long enough. With the resource version the write fails if
// the pod has changed, so no process replaces the claim of another.
func (w *waiter) announce(ctx context.Context) error {
	pod, err := w.pod(ctx)
	if err != nil {
		return err
	}
	now := w.Clock()
	found := budget.ClaimOn(pod, now)
	if found != nil && found.By != w.By {
		if found.Holding {
			return errHeld
		}
		return errTaken
	}
	if found != nil && found.Holding == w.claim.Holding && now.Before(found.Until.Add(-renewBefore)) {
		return nil
	}
	w.claim = w.claim.Renewed(now)
	text := w.claim.String()
	return w.write(ctx, pod, &text)
}

// pod reads the pod from the API server.
func (w *waiter) pod(ctx context.Context) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if err := w.API.Get(ctx, w.key, pod); err != nil {
		return nil, fmt.Errorf("read pod: %w", err)
	}
	if pod.UID != w.uid {
		return nil, fmt.Errorf("pod %s has been deleted and created again", w.key.Name)
	}
	return pod, nil
}

func (w *waiter) write(ctx context.Context, pod *corev1.Pod, claim *string) error {
	patch := must.JSON(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "resourceVersion": pod.ResourceVersion, "annotations": map[string]*string{v1beta1.AnnotationDisruptionClaim: claim},
	}})
	if err := w.API.Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("write the claim of the pod: %w", err)
	}
	return nil
}

// release removes the claim, also if the context of the process has ended. A claim that is not removed expires.
func (w *waiter) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	for ctx.Err() == nil {
		pod, err := w.pod(ctx)
		if err != nil {
			return
		}
		if found := budget.ClaimOn(pod, w.Clock()); found == nil || found.By != w.By {
			return
		}
		if err := w.write(ctx, pod, nil); !apierrors.IsConflict(err) {
			return
		}
	}
}

func sleep(ctx context.Context) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

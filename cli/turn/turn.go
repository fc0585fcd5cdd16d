package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/rollout/budget"
	"github.com/refit-project/refit/rollout/turn"
)

const (
	// pause is between two looks.
	pause = 2 * time.Second
	// renewBefore is how long before its end a claim is renewed.
	renewBefore = budget.ClaimFor / 2
	// releaseTimeout bounds the removal of a claim, also when the process is being interrupted.
	releaseTimeout = 5 * time.Second
)

// Config says what a process may take out. API reads from the API server, not from a cache.
type Config struct {
	API client.Client
	// By is a name that no other process has.
	By string
	// MaxUnavailable of the pods of the controller of the pod.
	MaxUnavailable intstr.IntOrString
	// IgnorePodDisruptionBudgets: they are not asked.
	IgnorePodDisruptionBudgets bool
	// Clock is the API server's time.
	Clock func() time.Time
	// Say is called with what the process waits for, when that changes.
	Say func(string)
}

// Take waits until the pod may be taken out of service, or ctx ends. Then it is to be taken out at once: the turn is held for
// budget.ClaimFor, and after that only by what the pod itself shows. Release removes the claim; it is to be called in any case, and
// does nothing when there is none.
//
// If another process has the turn with the same pod, this one goes with it and makes no claim: the pod is under way already. It may
// write only to a version of the pod that is Held, as the other process may end at any moment.
func Take(ctx context.Context, cfg Config, pod *corev1.Pod) (release func(context.Context), err error) {
	w := &waiter{Config: cfg, key: client.ObjectKeyFromObject(pod), uid: pod.UID, claim: budget.NewClaim(cfg.By, cfg.Clock())}
	if err := w.wait(ctx); err != nil {
		w.release(ctx)
		return func(context.Context) {}, err
	}
	return w.release, nil
}

// Foretell is what a process would have to wait for now; empty if for nothing. Nothing is written.
func Foretell(ctx context.Context, cfg Config, pod *corev1.Pod) (reason string, err error) {
	w := &waiter{Config: cfg, key: client.ObjectKeyFromObject(pod), uid: pod.UID, claim: budget.NewClaim(cfg.By, cfg.Clock()), foretells: true}
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
	// foretells: the claim is taken to be on the pod.
	foretells bool
}

var (
	// errTaken means that another process waits for its turn with the same pod.
	errTaken = errors.New("another process waits to take out the same pod")
	// errHeld means that another process has the turn with the same pod.
	errHeld = errors.New("another process takes out the same pod")
)

// Held reports whether it is the turn of a process to take out the pod, whichever: the pod is under way for everybody.
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

// step announces, looks, and announces what it has decided. It reports whether the process may go on.
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

// reason is what the process waits for.
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

// announce writes the claim unless it is on the pod and lasts. The resource version makes the write fail if the pod has changed, so
// that no process replaces the claim of another.
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

// pod reads it from the API server.
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
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "resourceVersion": pod.ResourceVersion, "annotations": map[string]*string{v1beta1.AnnotationDisruptionClaim: claim},
	}})
	if err != nil {
		return err
	}
	if err := w.API.Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("write the claim of the pod: %w", err)
	}
	return nil
}

// release removes the claim, also when the context of the process has ended. A claim that stays ends by itself.
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

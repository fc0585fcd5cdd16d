package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/record"
	"github.com/refit-project/refit/inplace/reported"
)

// updater updates pods and says on out what it does.
type updater struct {
	api cluster
	out io.Writer
}

// setImage changes the image and returns when the container runs with it and is ready. It may be interrupted and started
// again: the progress is stored on the pod.
func (u *updater) setImage(ctx context.Context, namespace, name, container, image string) error {
	pod, err := u.api.Pod(ctx, namespace, name)
	for err == nil {
		update, err := planned(pod, container, image)
		if refused := (*plan.RefusedError)(nil); errors.As(err, &refused) && refused.Has(plan.ReasonNoChange) {
			return u.follow(ctx, pod) // an earlier run has written it
		}
		if err != nil {
			return err
		}
		step, err := inplace.Start(pod, &update, time.Now())
		if err != nil {
			return err
		}
		var written bool
		if pod, written, err = u.apply(ctx, pod, step); err != nil {
			return err
		}
		if written && step.Kind != inplace.StepDrain {
			return u.follow(ctx, pod)
		}
	}
	return err
}

// planned refuses what is not possible in place, before anything is written.
func planned(pod *corev1.Pod, container, image string) (plan.Update, error) {
	wanted := plan.Template(pod)
	changed := plan.Find(&wanted.Spec, container)
	if changed == nil {
		return plan.Update{}, fmt.Errorf("pod %s has no container %s", pod.Name, container)
	}
	changed.Image = image
	return plan.New(plan.Template(pod), wanted, plan.Options{})
}

// apply performs a step. If the pod has changed since the step was decided, nothing is written, and the caller decides
// again with the pod that apply returns.
func (u *updater) apply(ctx context.Context, pod *corev1.Pod, step *inplace.Step) (stored *corev1.Pod, written bool, err error) {
	stored, err = inplace.Write(ctx, u.api, pod, step)
	if apierrors.IsConflict(err) || errors.Is(err, inplace.ErrChanged) {
		stored, err = u.api.Pod(ctx, pod.Namespace, pod.Name)
		return stored, false, err
	}
	if err != nil {
		return nil, false, err
	}
	fmt.Fprintln(u.out, step.Message)
	return stored, true, nil
}

// follow does what Next says until the update is complete.
func (u *updater) follow(ctx context.Context, pod *corev1.Pod) error {
	for {
		recorded, err := record.Read(pod)
		if err != nil {
			return err
		}
		known, err := reported.Read(pod)
		if err != nil {
			return err
		}
		decision := inplace.Next(pod, recorded, known, time.Now())
		switch {
		case decision.Kind == inplace.KindDone:
			fmt.Fprintln(u.out, decision.Message)
			return nil
		case decision.Final:
			return fmt.Errorf("%s: %s", decision.Reason, decision.Message)
		case decision.Kind == inplace.KindStep:
			if pod, _, err = u.apply(ctx, pod, decision.Step); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintln(u.out, decision.Message)
		if pod, err = u.changed(ctx, pod, decision.Again); err != nil {
			return err
		}
	}
}

// changed returns the pod when it has changed, or at the time again.
func (u *updater) changed(ctx context.Context, pod *corev1.Pod, again time.Time) (*corev1.Pod, error) {
	limited := ctx
	if !again.IsZero() {
		var cancel context.CancelFunc
		limited, cancel = context.WithDeadline(ctx, again)
		defer cancel()
	}
	changes, err := u.api.watch(ctx, pod)
	if err != nil {
		return nil, fmt.Errorf("watch pod %s: %w", pod.Name, err)
	}
	defer changes.Stop()
	select {
	case <-limited.Done():
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	case event := <-changes.ResultChan():
		if event.Type == watch.Deleted {
			return nil, fmt.Errorf("pod %s has been deleted", pod.Name)
		}
	}
	return u.api.Pod(ctx, pod.Namespace, pod.Name)
}

package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
)

// The changes of the template: another image and more CPU, and an image that does not exist.
const (
	goodChange = `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"docker.io/library/nginx:1.23","resources":{"requests":{"cpu":"20m"},"limits":{"cpu":"400m"}}}]}}}}`
	badChange  = `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"docker.io/library/nginx:no-such-tag"}]}}}}`
)

// patch changes the template of a Deployment as its owner does.
func (d *demo) patch(ctx context.Context, name, change string) error {
	fmt.Fprintf(d.Out, "\n$ kubectl patch deployment %s --patch='%s'\n", name, change)
	_, err := d.RunKubectl(ctx, "", "--namespace="+namespace, "patch", "deployment", name, "--patch="+change)
	return err
}

// change changes the template, and prints what its policy says until it says end of the newest template.
func (d *demo) change(ctx context.Context, name, change, end string) error {
	began := time.Now()
	if err := d.patch(ctx, name, change); err != nil {
		return err
	}
	fmt.Fprintf(d.Out, "\n  %7s %8s %6s %7s  %s\n", "seconds", "UPDATED", "READY", "FAILED", "condition Progressing")
	last := ""
	return d.until(ctx, "the end of the update", func(ctx context.Context) (bool, error) {
		policy, deployment := &refitv1alpha1.InPlaceUpdatePolicy{}, &appsv1.Deployment{}
		key := client.ObjectKey{Namespace: namespace, Name: name}
		if err := d.client.Get(ctx, key, deployment); err != nil {
			return false, fmt.Errorf("get Deployment: %w", err)
		}
		if err := d.client.Get(ctx, key, policy); err != nil {
			return false, fmt.Errorf("get InPlaceUpdatePolicy: %w", err)
		}
		is, message := progressing(policy)
		s := &policy.Status
		if s.ObservedTargetGeneration != deployment.Generation {
			return false, nil
		}
		if seen := fmt.Sprint(s.UpdatedReadyPods, s.FailedPods, is); seen != last {
			last = seen
			fmt.Fprintf(d.Out, "  %7.1f %8d %6d %7d  %s: %s\n", since(began), s.UpdatedPods, s.UpdatedReadyPods, s.FailedPods, is, message)
		}
		return is == end && s.UpdatedReadyPods == replicas, nil
	})
}

// rollOut changes the template of Deployment native, and waits for its controller.
func (d *demo) rollOut(ctx context.Context) error {
	if err := d.patch(ctx, "native", goodChange); err != nil {
		return err
	}
	fmt.Fprintf(d.Out, "$ kubectl rollout status deployment/native\n")
	if _, err := d.RunKubectl(ctx, "", "--namespace="+namespace, "rollout", "status", "deployment/native", "--timeout=10m"); err != nil {
		return err
	}
	return d.until(ctx, "the pods that have been replaced", func(ctx context.Context) (bool, error) {
		pods, err := d.pods(ctx, "native")
		return len(pods) == replicas, err
	})
}

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/hack/demokit"
	"github.com/refit-project/refit/hack/timeout"
)

const (
	namespace    = "refit-sidecarset-demo"
	prefix       = "refit-demo-" // of the names of SidecarSets, which have no namespace
	replicas     = 10
	limit        = 3 * time.Minute
	pollInterval = 100 * time.Millisecond

	oldImage = "docker.io/library/busybox:1.36"
	newImage = "docker.io/library/busybox:1.35"
)

//go:embed log.yaml
var logManifest []byte

//go:embed deployment.yaml
var deploymentManifest []byte

// demo is the demo's part of the cluster.
type demo struct {
	*demokit.Demo
	client *demokit.Client
}

func newDemo(on *demokit.Demo) (*demo, error) {
	api, err := on.Connect(v1beta1.AddToScheme, appsv1.AddToScheme)
	if err != nil {
		return nil, err
	}
	return &demo{Demo: on, client: api}, nil
}

// inject recreates the namespace and the SidecarSet, and ten pods after it.
func (d *demo) inject(ctx context.Context) error {
	if err := d.clear(ctx); err != nil {
		return err
	}
	if err := d.client.CreateNamespace(ctx, namespace); err != nil {
		return err
	}
	set, deployment := &v1beta1.SidecarSet{}, &appsv1.Deployment{}
	if err := errors.Join(yaml.UnmarshalStrict(logManifest, set), yaml.UnmarshalStrict(deploymentManifest, deployment)); err != nil {
		return err
	}
	template := &corev1.Pod{ObjectMeta: *deployment.Spec.Template.ObjectMeta.DeepCopy(), Spec: *deployment.Spec.Template.Spec.DeepCopy()}
	if err := d.create(ctx, set, template); err != nil {
		return err
	}
	if err := d.client.Create(ctx, deployment); err != nil {
		return fmt.Errorf("create Deployment: %w", err)
	}
	_, err := d.status(ctx, set, "ten pods that are ready", func(set *v1beta1.SidecarSet) bool { return set.Status.UpdatedReadyPods == replicas })
	return err
}

// create creates a SidecarSet and waits until every refit-manager injects it.
func (d *demo) create(ctx context.Context, set *v1beta1.SidecarSet, pod *corev1.Pod) error {
	if err := d.client.Create(ctx, set); err != nil {
		return fmt.Errorf("create SidecarSet %s: %w", set.Name, err)
	}
	inARow := 0 // there is more than one manager
	return d.until(ctx, "injection by SidecarSet "+set.Name, func(ctx context.Context) (bool, error) {
		probe := pod.DeepCopy()
		probe.Namespace, probe.GenerateName = namespace, "probe-"
		err := d.client.Create(ctx, probe, client.DryRunAll)
		if err != nil || !slices.Contains(strings.Split(probe.Annotations[v1beta1.AnnotationSidecarSetList], ","), set.Name) {
			inARow = 0 // the service account comes a moment after its namespace
			return false, nil
		}
		inARow++
		return inARow >= 10, nil
	})
}

// clear removes what an earlier demo has left.
func (d *demo) clear(ctx context.Context) error {
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}}
	for _, name := range []string{"log", "hot", "cold"} {
		objects = append(objects, &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: prefix + name}})
	}
	for _, object := range objects {
		if err := d.client.Remove(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// change updates the spec of a SidecarSet, whose status refit-manager writes meanwhile.
func (d *demo) change(ctx context.Context, name string, to func(*v1beta1.SidecarSetSpec)) (*v1beta1.SidecarSet, error) {
	set := &v1beta1.SidecarSet{}
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := d.client.Get(ctx, client.ObjectKey{Name: name}, set); err != nil {
			return err
		}
		to(&set.Spec)
		return d.client.Update(ctx, set)
	})
	if err != nil {
		return nil, fmt.Errorf("update SidecarSet %s: %w", name, err)
	}
	return set, nil
}

// status waits until the SidecarSet says so of its newest spec.
func (d *demo) status(ctx context.Context, set *v1beta1.SidecarSet, what string, done func(*v1beta1.SidecarSet) bool) (*v1beta1.SidecarSet, error) {
	last := &v1beta1.SidecarSet{}
	err := d.until(ctx, what, func(ctx context.Context) (bool, error) {
		err := d.client.Get(ctx, client.ObjectKeyFromObject(set), last)
		return err == nil && last.Status.ObservedGeneration == last.Generation && done(last), err
	})
	return last, err
}

func (d *demo) until(ctx context.Context, what string, done wait.ConditionWithContextFunc) error {
	return d.every(ctx, pollInterval, what, done)
}

func (d *demo) every(ctx context.Context, interval time.Duration, what string, done wait.ConditionWithContextFunc) error {
	if err := wait.PollUntilContextTimeout(ctx, interval, timeout.Scaled(limit), true, done); err != nil {
		return fmt.Errorf("wait for %s: %w", what, err)
	}
	return nil
}

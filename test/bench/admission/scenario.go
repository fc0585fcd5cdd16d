package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/bench/testcluster"
)

// Namespaces with and without the webhook.
const (
	injected  = "refit-bench-injected"
	untouched = "refit-bench-untouched"
)

// prefix of the names of SidecarSets, and the label by which two of them select pods.
const (
	prefix = "refit-bench-"
	label  = "refit-bench"
)

type bench struct {
	*testcluster.Cluster
	sets     int
	required bool
	complete *corev1.Pod // as a pod is stored after injection
}

// kinds of pods that are created in turn.
type kind int

const (
	byWebhook kind = iota // the webhook is called and injects
	plain                 // no webhook is called
	complete              // no webhook is called, and the pod has the sidecars already
	unmatched             // the webhook is called, and no SidecarSet selects the pod
	byPolicy              // the webhook is called and does nothing, and the API server injects
)

const kinds = 5

func (b *bench) prepare(ctx context.Context) error {
	for name, labels := range map[string]map[string]string{injected: nil, untouched: {"sidecarset.refit.dev/injection": "disabled"}} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		if err := b.API.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("make namespace: %w", err)
		}
	}
	for i := range b.sets {
		if err := b.API.Create(ctx, b.sidecarSet(i)); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("make SidecarSet: %w", err)
		}
	}
	if err := b.compilePolicies(ctx); err != nil {
		return err
	}
	inARow := 0 // there is more than one manager
	return testcluster.Await(ctx, 100*time.Millisecond, time.Minute, "pods to be injected into", func(ctx context.Context) (bool, error) {
		pod, compiled := b.pod(byWebhook), b.pod(byPolicy)
		err := errors.Join(b.API.Create(ctx, pod, client.DryRunAll), b.API.Create(ctx, compiled, client.DryRunAll))
		if err != nil || len(pod.Spec.Containers) != 3 || len(compiled.Spec.Containers) != 3 {
			inARow = 0
			return false, nil
		}
		inARow++
		b.complete = pod
		return inARow >= 10, nil
	})
}

// pod of a kind.
func (b *bench) pod(of kind) *corev1.Pod {
	switch of {
	case byWebhook:
		return newPod(injected)
	case plain:
		return newPod(untouched)
	case unmatched:
		pod := newPod(injected)
		pod.Labels[label] = "other"
		return pod
	case byPolicy:
		pod := newPod(injected)
		pod.Labels[label] = compiledLabel
		return pod
	}
	pod := newPod(untouched)
	pod.Annotations, pod.Spec = b.complete.Annotations, *b.complete.Spec.DeepCopy()
	return pod
}

// sidecarSet is one as log agents have: shared volumes, variables, a volume of its own. The first two select the pods.
func (b *bench) sidecarSet(i int) *v1beta1.SidecarSet {
	value := fmt.Sprintf("app-%d", i)
	if i < 2 {
		value = "web"
	}
	name := fmt.Sprintf("%s%d", prefix, i)
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.SidecarSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{label: value}},
		Containers: []v1beta1.SidecarContainer{{
			Container: corev1.Container{
				Name: name, Image: "registry.example.com/agent:1", Env: []corev1.EnvVar{{Name: "LEVEL", Value: "info"}},
				VolumeMounts: []corev1.VolumeMount{{Name: name, MountPath: "/spool"}},
			},
			ShareVolumePolicy: v1beta1.ShareVolumePolicy{Type: v1beta1.ShareVolumeEnabled},
			TransferEnv:       []v1beta1.TransferEnvVar{{SourceContainerName: "app", EnvName: "TZ"}},
		}},
		Volumes: []corev1.Volume{{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
	}}
	if b.required {
		set.Spec.InjectionStrategy.FailurePolicy = v1beta1.InjectionFail
	}
	return set
}

// newPod is never scheduled: only its creation is measured.
func newPod(namespace string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "web-", Namespace: namespace, Labels: map[string]string{label: "web"}},
		Spec: corev1.PodSpec{
			SchedulingGates: []corev1.PodSchedulingGate{{Name: "refit.dev/bench"}},
			Containers: []corev1.Container{{
				Name: "app", Image: "registry.example.com/app:1", Env: []corev1.EnvVar{{Name: "TZ", Value: "UTC"}},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
			}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
}

// measure creates pods of all kinds in turn, so that all see the same machine. A tenth of them warms up.
func (b *bench) measure(ctx context.Context, pods, parallel int) (result, error) {
	r := result{Parallel: parallel}
	var mu sync.Mutex
	var group sync.WaitGroup
	var failures []error
	for worker := range parallel {
		group.Go(func() {
			for i := range pods/parallel + pods/parallel/10 {
				for turn := range kinds {
					of := kind((turn + i + worker) % kinds)
					took, err := b.create(ctx, of)
					mu.Lock()
					switch {
					case err != nil:
						failures = append(failures, err)
					case i >= pods/parallel/10:
						r.took[of] = append(r.took[of], took)
					}
					mu.Unlock()
					if err != nil {
						return
					}
				}
			}
		})
	}
	group.Wait()
	r.summarize()
	return r, errors.Join(append(failures, b.removePods(ctx))...)
}

func (b *bench) create(ctx context.Context, of kind) (time.Duration, error) {
	pod := b.pod(of)
	began := time.Now()
	err := b.API.Create(ctx, pod)
	took := time.Since(began)
	if err != nil {
		return 0, fmt.Errorf("create pod: %w", err)
	}
	if want := []int{byWebhook: 3, plain: 1, complete: 3, unmatched: 1, byPolicy: 3}[of]; len(pod.Spec.Containers) != want {
		return 0, fmt.Errorf("a pod in %s has %d containers, not %d", pod.Namespace, len(pod.Spec.Containers), want)
	}
	return took, nil
}

func (b *bench) removePods(ctx context.Context) error {
	for _, namespace := range []string{injected, untouched} {
		if err := b.API.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(namespace), client.GracePeriodSeconds(0)); err != nil {
			return fmt.Errorf("delete pods: %w", err)
		}
	}
	return nil
}

func (b *bench) tearDown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var errs []error
	for i := range b.sets {
		errs = append(errs, client.IgnoreNotFound(b.API.Delete(ctx, b.sidecarSet(i))))
	}
	errs = append(errs, b.deletePolicies(ctx))
	for _, name := range []string{injected, untouched} {
		errs = append(errs, client.IgnoreNotFound(b.API.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})))
	}
	return errors.Join(errs...)
}

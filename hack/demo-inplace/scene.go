package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/hack/patience"
	"github.com/refit-project/refit/hack/place"
)

//go:embed pod.yaml
var podManifest []byte

const (
	setUpTimeout = 3 * time.Minute
	pollInterval = 200 * time.Millisecond
	newImage     = "docker.io/library/nginx:1.23"
	newLimit     = "256Mi"
	// drainSeconds is how long either pod goes on serving requests that were sent before it left its Services: in place by
	// --drain-seconds, and where it is recreated by a preStop hook.
	drainSeconds = 1
)

// scene is the pod that is updated, and the one that is made anew.
type scene struct {
	place.Place
	tool      string // kubectl-refit
	client    client.WithWatch
	pod, anew *corev1.Pod
	manifest  *corev1.Pod // of anew
	ask       *asker
}

func openScene(where place.Place, tool string) (*scene, error) {
	api, err := place.Connect(where.Kubeconfig)
	if err != nil {
		return nil, err
	}
	s := &scene{Place: where, tool: tool, client: api, pod: &corev1.Pod{}}
	if err := yaml.UnmarshalStrict(podManifest, s.pod); err != nil {
		return nil, err
	}
	s.manifest = s.recreated()
	s.anew = s.manifest.DeepCopy()
	s.ask, err = newAsker(where.Kubeconfig, s.pod.Namespace)
	return s, err
}

// recreated is the pod that is deleted and made anew.
func (s *scene) recreated() *corev1.Pod {
	pod := s.pod.DeepCopy()
	pod.ObjectMeta = metav1.ObjectMeta{Name: "web-anew", Namespace: s.pod.Namespace}
	pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: drainSeconds}}}
	return pod
}

// setUp makes both pods anew and waits until they are ready.
func (s *scene) setUp(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.pod.Namespace}}
	if err := s.client.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make namespace: %w", err)
	}
	for _, pod := range []*corev1.Pod{s.pod, s.anew} {
		// On the same node, onto which the new image is pulled.
		pod.Spec.NodeName = s.pod.Spec.NodeName
		if err := s.remove(ctx, pod.DeepCopy()); err != nil {
			return err
		}
		if err := s.create(ctx, pod); err != nil {
			return err
		}
		if err := s.ready(ctx, pod); err != nil {
			return err
		}
	}
	return nil
}

// create makes a pod and opens its readiness gate, as the controller of a workload does.
func (s *scene) create(ctx context.Context, pod *corev1.Pod) error {
	// The service account, without which no pod is let in, comes a moment after its namespace.
	err := s.until(ctx, func(ctx context.Context) (bool, error) {
		err := s.client.Create(ctx, pod)
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("make pod %s: %w", pod.Name, err)
	}
	open := fmt.Sprintf(`{"status":{"conditions":[{"type":"InPlaceUpdateReady","status":"True","lastTransitionTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339))
	if err := s.client.Status().Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, []byte(open))); err != nil {
		return fmt.Errorf("open the readiness gate of pod %s: %w", pod.Name, err)
	}
	return nil
}

func (s *scene) ready(ctx context.Context, pod *corev1.Pod) error {
	err := s.until(ctx, func(ctx context.Context) (bool, error) {
		err := s.client.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return err == nil && isReady(pod), client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("wait for pod %s to be ready: %w", pod.Name, err)
	}
	return nil
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
}

func (s *scene) remove(ctx context.Context, object client.Object) error {
	return s.until(ctx, func(ctx context.Context) (bool, error) {
		err := s.client.Delete(ctx, object, client.GracePeriodSeconds(0))
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

func (s *scene) until(ctx context.Context, done wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextTimeout(ctx, pollInterval, patience.Of(setUpTimeout), true, done)
}

// refit runs kubectl-refit set and shows what it says.
func (s *scene) refit(ctx context.Context, out io.Writer, args ...string) error {
	args = append([]string{"set"}, append(args, "--namespace="+s.pod.Namespace)...)
	fmt.Fprintf(out, "\n$ kubectl refit %s\n", strings.Join(args, " "))
	command := exec.CommandContext(ctx, s.tool, args...)
	command.Stdout, command.Stderr, command.Env = out, out, append(os.Environ(), "KUBECONFIG="+s.Kubeconfig)
	if err := command.Run(); err != nil {
		return fmt.Errorf("kubectl-refit: %w", err)
	}
	return nil
}

// recreate deletes a pod and makes it anew with the change that the other gets in place.
func (s *scene) recreate(ctx context.Context) error {
	next := s.manifest.DeepCopy()
	next.Spec.NodeName = s.anew.Spec.NodeName
	next.Spec.Containers[0].Image = newImage
	next.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory] = resource.MustParse(newLimit)
	if err := s.client.Delete(ctx, s.anew.DeepCopy()); err != nil {
		return fmt.Errorf("delete pod %s: %w", s.anew.Name, err)
	}
	err := s.until(ctx, func(ctx context.Context) (bool, error) {
		err := s.client.Get(ctx, client.ObjectKeyFromObject(s.anew), &corev1.Pod{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("wait for pod %s to be gone: %w", s.anew.Name, err)
	}
	if err := s.create(ctx, next); err != nil {
		return err
	}
	return s.ready(ctx, next)
}

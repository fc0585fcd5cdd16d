package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/hack/demokit"
)

//go:embed pod.yaml
var podManifest []byte

const (
	newImage = "docker.io/library/nginx:1.23"
	newLimit = "256Mi"
	// drainSeconds is how long either pod goes on serving requests that were sent before it left its Services: in place by
	// --drain-seconds, and where it is recreated by a preStop hook.
	drainSeconds = 1
)

// fixture is the pod that is updated in place, and the one that is recreated.
type fixture struct {
	*demokit.Demo
	tool           string // kubectl-refit
	api            *demokit.Client
	pod, recreated *corev1.Pod
	manifest       *corev1.Pod // of recreated
	ask            *asker
}

func newFixture(kit *demokit.Demo, tool string) (*fixture, error) {
	api, err := kit.Connect()
	if err != nil {
		return nil, err
	}
	f := &fixture{Demo: kit, tool: tool, api: api, pod: &corev1.Pod{}}
	if err := yaml.UnmarshalStrict(podManifest, f.pod); err != nil {
		return nil, err
	}
	f.manifest = recreatedPod(f.pod)
	f.recreated = f.manifest.DeepCopy()
	f.ask, err = newAsker(kit.Kubeconfig, f.pod.Namespace)
	return f, err
}

// recreatedPod is a pod like the one that is updated in place, to be deleted and created again.
func recreatedPod(like *corev1.Pod) *corev1.Pod {
	pod := like.DeepCopy()
	pod.ObjectMeta = metav1.ObjectMeta{Name: "web-recreated", Namespace: like.Namespace}
	pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: drainSeconds}}}
	return pod
}

// setUp creates both pods, instead of the pods of an earlier demo, and waits until they are ready.
func (f *fixture) setUp(ctx context.Context) error {
	if err := f.api.CreateNamespace(ctx, f.pod.Namespace); err != nil {
		return err
	}
	for _, pod := range []*corev1.Pod{f.pod, f.recreated} {
		// On the same node, onto which the new image is pulled.
		pod.Spec.NodeName = f.pod.Spec.NodeName
		if err := f.api.Remove(ctx, pod.DeepCopy()); err != nil {
			return err
		}
		if err := f.create(ctx, pod); err != nil {
			return err
		}
	}
	return nil
}

// create creates a pod, sets its readiness gate to True, as the controller of a workload does, and waits until it is ready.
func (f *fixture) create(ctx context.Context, pod *corev1.Pod) error {
	if err := f.api.CreatePod(ctx, pod); err != nil {
		return err
	}
	gate := fmt.Sprintf(`{"status":{"conditions":[{"type":"InPlaceUpdateReady","status":"True","lastTransitionTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339))
	if err := f.api.Status().Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, []byte(gate))); err != nil {
		return fmt.Errorf("set the readiness gate of pod %s: %w", pod.Name, err)
	}
	return f.api.WaitUntilReady(ctx, pod, "")
}

// refit runs kubectl-refit set and shows its output.
func (f *fixture) refit(ctx context.Context, args ...string) error {
	args = append([]string{"set"}, append(args, "--namespace="+f.pod.Namespace)...)
	fmt.Fprintf(f.Out, "\n$ kubectl refit %s\n", strings.Join(args, " "))
	command := exec.CommandContext(ctx, f.tool, args...)
	command.Stdout, command.Stderr, command.Env = f.Out, f.Out, append(os.Environ(), "KUBECONFIG="+f.Kubeconfig)
	if err := command.Run(); err != nil {
		return fmt.Errorf("kubectl-refit: %w", err)
	}
	return nil
}

// recreate deletes a pod and creates it with the change that the other gets in place.
func (f *fixture) recreate(ctx context.Context) error {
	next := f.manifest.DeepCopy()
	next.Spec.NodeName = f.recreated.Spec.NodeName
	next.Spec.Containers[0].Image = newImage
	next.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory] = resource.MustParse(newLimit)
	if err := f.api.Delete(ctx, f.recreated.DeepCopy()); err != nil {
		return fmt.Errorf("delete pod %s: %w", f.recreated.Name, err)
	}
	err := demokit.Until(ctx, func(ctx context.Context) (bool, error) {
		err := f.api.Get(ctx, client.ObjectKeyFromObject(f.recreated), &corev1.Pod{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("wait until pod %s is gone: %w", f.recreated.Name, err)
	}
	return f.create(ctx, next)
}

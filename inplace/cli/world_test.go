package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/refit-project/refit/inplace"
	inplacecli "github.com/refit-project/refit/inplace/cli"
	"github.com/refit-project/refit/inplace/cli/change"
	"github.com/refit-project/refit/internal/console"
)

// cluster has one pod, and refuses every write unless it is told how to take it.
type cluster struct {
	pod      *corev1.Pod
	template *corev1.PodTemplateSpec
	patch    func(subresource string) (*corev1.Pod, error)
	try      func(subresource string) error
	writes   int
	read     func(n int) (*corev1.Pod, error) // the n-th time, from 1
	reads    int
}

func (c *cluster) Pod(_ context.Context, _, name string) (*corev1.Pod, error) {
	if c.reads++; c.read != nil {
		return c.read(c.reads)
	}
	if name != c.pod.Name {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, name)
	}
	return c.pod.DeepCopy(), nil
}

func (c *cluster) PatchPod(_ context.Context, _ *corev1.Pod, subresource string, _ []byte) (*corev1.Pod, error) {
	c.writes++
	if c.patch == nil {
		return nil, errors.New("no write was expected")
	}
	stored, err := c.patch(subresource)
	if stored != nil {
		stored = stored.DeepCopy()
		stored.ResourceVersion = fmt.Sprint(c.writes)
	}
	return stored, err
}

func (c *cluster) May(context.Context, string, inplacecli.Right) (bool, error) { return true, nil }

func (c *cluster) TryPatchPod(_ context.Context, _ *corev1.Pod, subresource string, _ []byte) error {
	if c.try == nil {
		return nil
	}
	return c.try(subresource)
}

func (c *cluster) Restart(context.Context, *corev1.Pod, inplace.Instance) error {
	return errors.New("no restart was expected")
}

func (c *cluster) WatchPod(context.Context, *corev1.Pod) (watch.Interface, error) {
	return watch.NewFake(), nil
}

func (c *cluster) Template(context.Context, string, metav1.OwnerReference) (*corev1.PodTemplateSpec, error) {
	if c.template == nil {
		return nil, errors.New("forbidden")
	}
	return c.template, nil
}

func web() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "demo", UID: "u", Annotations: map[string]string{"level": "info"}}}
	pod.Spec = corev1.PodSpec{NodeName: "node-1", RestartPolicy: corev1.RestartPolicyAlways,
		InitContainers: []corev1.Container{{Name: "setup", Image: "setup:1"}},
		Containers: []corev1.Container{
			{Name: "app", Image: "app:1", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}}, Env: []corev1.EnvVar{
				{Name: "LEVEL", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['level']"}}},
				{Name: "FIXED", Value: "x"},
			}},
			{Name: "log", Image: "log:1"},
		},
	}
	pod.Status.Phase = corev1.PodRunning
	return pod
}

func update(t *testing.T, api *cluster, config inplacecli.Config, change change.Change) (string, error) {
	t.Helper()
	var out bytes.Buffer
	config.API, config.Output = api, console.NewOutput(&out, false)
	err := inplacecli.Update(t.Context(), config, "demo", inplacecli.Target{Kind: inplacecli.KindPod, Name: "web"}, change)
	return out.String(), err
}

func must(change change.Change, err error) change.Change {
	if err != nil {
		panic(err)
	}
	return change
}

package completion_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cli/completion"
)

func newCluster(t *testing.T) completion.Cluster {
	t.Helper()
	kinds := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(kinds), appsv1.AddToScheme(kinds), v1beta1.AddToScheme(kinds), v1alpha1.AddToScheme(kinds)); err != nil {
		t.Fatal(err)
	}
	from := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	spec := corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "proxy"}},
		Containers: []corev1.Container{{Name: "app", Env: []corev1.EnvVar{
			{Name: "PLAIN", Value: "x"}, {Name: "NODE", ValueFrom: from("spec.nodeName")}, {Name: "LEVEL", ValueFrom: from("metadata.annotations['level']")}, {Name: "TIER", ValueFrom: from("metadata.labels['tier']")},
		}}, {Name: "log", Env: []corev1.EnvVar{{Name: "LEVEL", ValueFrom: from("metadata.annotations['level']")}}}},
	}
	object := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}}
	}
	deployment := &appsv1.Deployment{ObjectMeta: object("shop", "web")}
	deployment.Spec.Template.Spec = corev1.PodSpec{Containers: []corev1.Container{{Name: "server"}}}
	return completion.Cluster{Namespace: "shop", API: fake.NewClientBuilder().WithScheme(kinds).WithObjects(
		&corev1.Pod{ObjectMeta: object("shop", "web-0"), Spec: spec}, &corev1.Pod{ObjectMeta: object("shop", "db-0")}, &corev1.Pod{ObjectMeta: object("other", "web-9")},
		deployment, &v1beta1.ContainerRecreateRequest{ObjectMeta: object("shop", "web-x")}, &v1beta1.SidecarSet{ObjectMeta: object("", "mesh")},
	).Build()}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for name, tc := range map[string]struct {
		offer func(context.Context) ([]string, error)
		want  []string
	}{
		"pods":                 {func(ctx context.Context) ([]string, error) { return c.Pods(ctx, "") }, []string{"db-0", "web-0"}},
		"pods that begin with": {func(ctx context.Context) ([]string, error) { return c.Pods(ctx, "w") }, []string{"web-0"}},
		"pods by kind":         {func(ctx context.Context) ([]string, error) { return c.Pods(ctx, "po/d") }, []string{"po/db-0"}},
		"kinds":                {func(ctx context.Context) ([]string, error) { return c.Objects(ctx, "d", completion.Workloads...) }, []string{"deployment/", "daemonset/"}},
		"objects of a kind":    {func(ctx context.Context) ([]string, error) { return c.Objects(ctx, "deploy/", completion.Workloads...) }, []string{"deploy/web"}},
		"requests":             {func(ctx context.Context) ([]string, error) { return c.Objects(ctx, "crr/", completion.Requests...) }, []string{"crr/web-x"}},
		"no rollouts": {func(ctx context.Context) ([]string, error) {
			return c.Objects(ctx, "restartrollout/", completion.Requests...)
		}, nil},
		"unknown kind": {func(ctx context.Context) ([]string, error) { return c.Objects(ctx, "job/", completion.Workloads...) }, nil},
		"objects in no namespace": {func(ctx context.Context) ([]string, error) {
			return c.Named(ctx, v1beta1.GroupVersion().WithKind("SidecarSet"), "")
		}, []string{"mesh"}},
		"containers of a pod":       {func(ctx context.Context) ([]string, error) { return c.Containers(ctx, "web-0", "", "") }, []string{"proxy", "app", "log"}},
		"containers that begin":     {func(ctx context.Context) ([]string, error) { return c.Containers(ctx, "pod/web-0", "", "a") }, []string{"app"}},
		"containers of a workload":  {func(ctx context.Context) ([]string, error) { return c.Containers(ctx, "deployment/web", "", "") }, []string{"server"}},
		"containers by selector":    {func(ctx context.Context) ([]string, error) { return c.Containers(ctx, "", "app=web-0", "l") }, []string{"log"}},
		"selector without pods":     {func(ctx context.Context) ([]string, error) { return c.Containers(ctx, "", "app=none", "") }, nil},
		"containers of nothing yet": {func(ctx context.Context) ([]string, error) { return c.Containers(ctx, "", "", "") }, nil},
		"variables":                 {func(ctx context.Context) ([]string, error) { return c.Variables(ctx, "pod/web-0", "") }, []string{"LEVEL=", "TIER="}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tc.offer(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if _, err := c.Containers(t.Context(), "pod/none", "", ""); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("containers of a pod that is not there: %v", err)
	}
}

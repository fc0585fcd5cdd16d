package main

import (
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/hack/demokit"
	"github.com/refit-project/refit/hack/portforward"
	"github.com/refit-project/refit/hack/timeout"
)

//go:embed files.yaml
var filesManifest string

const (
	namespace   = "refit-sidecar-demo"
	podName     = "web-0"
	callTimeout = 30 * time.Second
)

// demo is the demo's namespace on a cluster.
type demo struct {
	*demokit.Demo
	client   *demokit.Client
	token    string
	filesIP  string
	api, web *portforward.Port // of pod web-0
}

func newDemo(kit *demokit.Demo) (*demo, error) {
	client, err := kit.Connect(appsv1.AddToScheme)
	if err != nil {
		return nil, err
	}
	port := func(number int) *portforward.Port {
		return &portforward.Port{Kubectl: kit.Kubectl, Namespace: namespace, Pod: podName, Number: number}
	}
	return &demo{Demo: kit, client: client, token: rand.Text(), api: port(5000), web: port(80)}, nil
}

func (d *demo) close() {
	d.api.Close()
	d.web.Close()
}

// setUp creates everything, instead of what an earlier demo has left, and waits until the pods are ready.
func (d *demo) setUp(ctx context.Context) error {
	if err := d.client.Remove(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return err
	}
	if err := d.client.CreateNamespace(ctx, namespace); err != nil {
		return err
	}
	for _, name := range []string{"10-rbac.yaml", "20-policy.yaml", "examples/game-config.yaml", "examples/gameserver.yaml"} {
		manifest, err := d.Deploy.Manifest(filepath.Join("sidecar", name))
		if err != nil {
			return err
		}
		if err := d.kubectl(ctx, string(manifest), "apply", "--server-side", "--filename", "-"); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"wait", "--for=condition=Established", "crd/gameservers.game.kruise.io", "--timeout=" + timeout.Scaled(30*time.Second).String()},
		{"create", "secret", "generic", "refit-sidecar-token", "--from-literal=token=" + d.token},
	} {
		if err := d.kubectl(ctx, "", args...); err != nil {
			return err
		}
	}
	// The service account default, without which no pod is admitted, is created a moment after its namespace.
	err := demokit.Until(ctx, func(ctx context.Context) (bool, error) {
		err := d.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "default"}, &corev1.ServiceAccount{})
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("wait for the service account default: %w", err)
	}
	if err := d.kubectl(ctx, filesManifest, "apply", "--filename", "-"); err != nil {
		return err
	}
	if err := d.startWeb(ctx); err != nil {
		return err
	}
	files := d.named("files")
	if err := d.client.WaitUntilReady(ctx, files, ""); err != nil {
		return err
	}
	d.filesIP = files.Status.PodIP
	return d.client.WaitUntilReady(ctx, d.named(podName), "")
}

// startWeb creates a StatefulSet from the example pod, so that a deleted pod is replaced by another one of the same workload.
func (d *demo) startWeb(ctx context.Context) error {
	manifest, err := d.Deploy.Manifest("sidecar/examples/pod.yaml")
	if err != nil {
		return err
	}
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict(manifest, &pod); err != nil {
		return fmt.Errorf("read deploy/sidecar/examples/pod.yaml: %w", err)
	}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: appsv1.StatefulSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: pod.Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec},
		},
	}
	if err := d.client.Create(ctx, set); err != nil {
		return fmt.Errorf("create StatefulSet web: %w", err)
	}
	return nil
}

func (d *demo) named(pod string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod}}
}

func (d *demo) pod(ctx context.Context) (*corev1.Pod, error) {
	pod := d.named(podName)
	return pod, d.client.Get(ctx, client.ObjectKeyFromObject(pod), pod)
}

func (d *demo) kubectl(ctx context.Context, input string, args ...string) error {
	_, err := d.RunKubectl(ctx, input, append([]string{"--namespace", namespace}, args...)...)
	return err
}

// source is where the pod files serves a path.
func (d *demo) source(path string) string { return "http://" + d.filesIP + "/" + path }

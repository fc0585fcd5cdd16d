package main

import (
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/hack/install"
	"github.com/refit-project/refit/hack/patience"
	"github.com/refit-project/refit/hack/place"
	"github.com/refit-project/refit/hack/portforward"
)

//go:embed files.yaml
var filesManifest string

const (
	namespace    = "refit-sidecar-demo"
	podName      = "web-0"
	setUpTimeout = 3 * time.Minute
	actTimeout   = 2 * time.Minute
	pollInterval = 20 * time.Millisecond
	callTimeout  = 30 * time.Second
)

// demo is the demo's namespace on a cluster.
type demo struct {
	place.Place
	deploy   install.Config
	client   client.Client
	token    string
	filesIP  string
	api, web *portforward.Port // of pod web-0
}

func newDemo(where place.Place, deploy install.Config) (*demo, error) {
	api, err := place.Connect(where.Kubeconfig, appsv1.AddToScheme)
	if err != nil {
		return nil, err
	}
	port := func(number int) *portforward.Port {
		return &portforward.Port{Kubectl: where.Kubectl, Namespace: namespace, Pod: podName, Number: number}
	}
	return &demo{Place: where, deploy: deploy, client: api, token: rand.Text(), api: port(5000), web: port(80)}, nil
}

func (d *demo) close() {
	d.api.Close()
	d.web.Close()
}

// setUp makes everything anew and waits until the pods are ready.
func (d *demo) setUp(ctx context.Context) error {
	if err := d.until(ctx, patience.Of(setUpTimeout), func(ctx context.Context) (bool, error) {
		err := d.client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(ignoreConflict(err))
	}); err != nil {
		return fmt.Errorf("take away the namespace of an earlier demo: %w", err)
	}
	if err := d.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return fmt.Errorf("make namespace: %w", err)
	}
	for _, name := range []string{"10-rbac.yaml", "20-policy.yaml", "examples/game-config.yaml", "examples/gameserver.yaml"} {
		manifest, err := d.deploy.Manifest(filepath.Join("sidecar", name))
		if err != nil {
			return err
		}
		if err := d.kubectl(ctx, string(manifest), "apply", "--server-side", "--filename", "-"); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"wait", "--for=condition=Established", "crd/gameservers.game.kruise.io", "--timeout=" + patience.Of(30*time.Second).String()},
		{"create", "secret", "generic", "refit-sidecar-token", "--from-literal=token=" + d.token},
	} {
		if err := d.kubectl(ctx, "", args...); err != nil {
			return err
		}
	}
	// The service account default, without which no pod is let in, comes a moment after its namespace.
	err := d.until(ctx, patience.Of(setUpTimeout), func(ctx context.Context) (bool, error) {
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
	files, err := d.ready(ctx, "files", "")
	if err != nil {
		return err
	}
	d.filesIP = files.Status.PodIP
	_, err = d.ready(ctx, podName, "")
	return err
}

func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) { // it is being deleted
		return nil
	}
	return err
}

// startWeb makes a StatefulSet of the example pod: its pod is another one after a deletion, of the same workload.
func (d *demo) startWeb(ctx context.Context) error {
	manifest, err := d.deploy.Manifest("sidecar/examples/pod.yaml")
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
		return fmt.Errorf("make StatefulSet web: %w", err)
	}
	return nil
}

// ready waits for a pod that is ready and not the one with that UID.
func (d *demo) ready(ctx context.Context, name, not string) (*corev1.Pod, error) {
	var last *corev1.Pod
	err := d.until(ctx, patience.Of(setUpTimeout), func(ctx context.Context) (bool, error) {
		pod, err := d.pod(ctx, name)
		if err != nil {
			return false, client.IgnoreNotFound(err)
		}
		last = pod
		return string(pod.UID) != not && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}), nil
	})
	if err != nil {
		return nil, fmt.Errorf("wait for pod %s to be ready: %w", name, err)
	}
	return last, nil
}

func (d *demo) pod(ctx context.Context, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	return pod, d.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod)
}

func (d *demo) until(ctx context.Context, limit time.Duration, done wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextTimeout(ctx, pollInterval, limit, true, done)
}

func (d *demo) kubectl(ctx context.Context, input string, args ...string) error {
	command := exec.CommandContext(ctx, d.Kubectl, append([]string{"--namespace", namespace}, args...)...)
	command.Stdin = strings.NewReader(input)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// source is where the pod files serves a path.
func (d *demo) source(path string) string { return "http://" + d.filesIP + "/" + path }

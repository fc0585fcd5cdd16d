package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/examples/hotupgrade/traffic"
	"github.com/refit-project/refit/internal/kubelet"
)

// steady is how many intervals of the load are recorded before, between and after the upgrades.
const steady = 20

// recording is what the load has seen of a server that was upgraded twice.
type recording struct {
	intervals []traffic.Interval
	total     traffic.Interval
	changes   []time.Time // of the image
	completed []time.Time // as the SidecarSet says
}

// upgrade upgrades the server of examples/hotupgrade under load, hot or by a restart of its container.
func (d *demo) upgrade(ctx context.Context, hot bool) (*recording, error) {
	name := map[bool]string{true: "hot", false: "cold"}[hot]
	set, err := d.server(name, hot)
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: set.Spec.Selector.MatchLabels}}
	pod.Spec.AutomountServiceAccountToken = new(false)
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: oldImage, Command: []string{"sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1000 & wait $!; done"}}}
	if err := d.create(ctx, set, pod); err != nil {
		return nil, err
	}
	if err := d.start(ctx, pod, kubelet.Ready); err != nil {
		return nil, err
	}
	load := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "load-" + name}}
	image, err := d.Image("hotupgrade-load")
	if err != nil {
		return nil, err
	}
	load.Spec.RestartPolicy, load.Spec.AutomountServiceAccountToken = corev1.RestartPolicyNever, new(false)
	load.Spec.Containers = []corev1.Container{{Name: "load", Image: image, Args: []string{"--address=" + pod.Status.PodIP + ":8080"}}}
	if err := d.start(ctx, load, func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning }); err != nil {
		return nil, err
	}
	r := &recording{}
	for _, next := range []string{"hotupgrade-next", "hotupgrade"} {
		if err := d.further(ctx, load, steady); err != nil {
			return nil, err
		}
		if err := d.setImage(ctx, r, set, next); err != nil {
			return nil, err
		}
	}
	if err := d.further(ctx, load, steady); err != nil {
		return nil, err
	}
	return r, d.end(ctx, r, load)
}

// server is the SidecarSet of the example.
func (d *demo) server(name string, hot bool) (*v1beta1.SidecarSet, error) {
	manifest, err := os.ReadFile(filepath.Join(d.Root, "examples", "hotupgrade", "sidecarset.yaml"))
	if err != nil {
		return nil, err
	}
	set := &v1beta1.SidecarSet{}
	if err := yaml.UnmarshalStrict(manifest, set); err != nil {
		return nil, fmt.Errorf("read SidecarSet: %w", err)
	}
	set.Name = prefix + name
	set.Spec.Namespace = namespace
	set.Spec.Selector.MatchLabels = map[string]string{"app": "server-" + name}
	server := &set.Spec.Containers[0]
	if server.Image, err = d.Image("hotupgrade"); err != nil {
		return nil, err
	}
	if hot {
		server.UpgradeStrategy.HotUpgradeEmptyImage, err = d.Image("hotupgrade-idle")
	} else {
		server.UpgradeStrategy = v1beta1.SidecarContainerUpgradeStrategy{}
		server.Env = append(server.Env, corev1.EnvVar{Name: "SIDECARSET_VERSION", Value: "1"})
	}
	return set, err
}

// setImage starts an upgrade and waits for its end.
func (d *demo) setImage(ctx context.Context, r *recording, set *v1beta1.SidecarSet, name string) error {
	image, err := d.Image(name)
	if err != nil {
		return err
	}
	r.changes = append(r.changes, time.Now())
	changed, err := d.change(ctx, set.Name, func(spec *v1beta1.SidecarSetSpec) { spec.Containers[0].Image = image })
	if err != nil {
		return err
	}
	_, err = d.status(ctx, changed, "the upgrade", func(set *v1beta1.SidecarSet) bool {
		c := meta.FindStatusCondition(set.Status.Conditions, v1beta1.ConditionProgressing)
		return c != nil && c.Reason == "Completed" && set.Status.UpdatedReadyPods == 1
	})
	r.completed = append(r.completed, time.Now())
	return err
}

func (d *demo) start(ctx context.Context, pod *corev1.Pod, started func(*corev1.Pod) bool) error {
	if err := d.client.Create(ctx, pod); err != nil {
		return fmt.Errorf("create pod %s: %w", pod.Name, err)
	}
	return d.until(ctx, "pod "+pod.Name, func(ctx context.Context) (bool, error) {
		err := d.client.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return err == nil && started(pod), err
	})
}

// further waits until the load has printed so many intervals more.
func (d *demo) further(ctx context.Context, load *corev1.Pod, intervals int) error {
	first := -1
	return d.every(ctx, time.Second, "requests", func(ctx context.Context) (bool, error) {
		seen, _, err := d.log(ctx, load)
		if err != nil && !errors.Is(err, traffic.ErrUnfinished) {
			return false, err
		}
		if first < 0 {
			first = len(seen)
		}
		return len(seen) >= first+intervals, nil
	})
}

func (d *demo) log(ctx context.Context, load *corev1.Pod) ([]traffic.Interval, traffic.Interval, error) {
	out, err := d.RunKubectl(ctx, "", "--namespace", namespace, "logs", load.Name)
	if err != nil {
		return nil, traffic.Interval{}, err
	}
	return traffic.Read(strings.NewReader(out))
}

// end stops the load and reads what it has seen.
func (d *demo) end(ctx context.Context, r *recording, load *corev1.Pod) error {
	if _, err := d.RunKubectl(ctx, "", "--namespace", namespace, "exec", load.Name, "--", "/load", "stop"); err != nil {
		return err
	}
	return d.every(ctx, time.Second, "the end of the load", func(ctx context.Context) (bool, error) {
		var err error
		r.intervals, r.total, err = d.log(ctx, load)
		if errors.Is(err, traffic.ErrUnfinished) {
			return false, nil
		}
		return err == nil, err
	})
}

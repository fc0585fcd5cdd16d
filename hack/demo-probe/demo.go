package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/hack/demokit"
	"github.com/refit-project/refit/hack/timeout"
	"github.com/refit-project/refit/internal/kubelet"
)

//go:embed pod.yaml
var podManifest []byte

//go:embed marker.yaml
var markerManifest []byte

const (
	// target is the time within which the pod has to follow a change.
	target        = 2 * time.Second
	followTimeout = time.Minute

	deletionCost  = "controller.kubernetes.io/pod-deletion-cost"
	conditionIdle = "game.example.com/idle"
	labelState    = "game.example.com/state"
)

// demo is the pod and the marker of the demo on a cluster.
type demo struct {
	*demokit.Demo
	api    *demokit.Client
	pod    *corev1.Pod
	marker *v1alpha1.PodProbeMarker
}

func newDemo(kit *demokit.Demo) (*demo, error) {
	api, err := kit.Connect(v1alpha1.AddToScheme)
	if err != nil {
		return nil, err
	}
	d := &demo{Demo: kit, api: api, pod: &corev1.Pod{}, marker: &v1alpha1.PodProbeMarker{}}
	return d, errors.Join(yaml.UnmarshalStrict(podManifest, d.pod), yaml.UnmarshalStrict(markerManifest, d.marker))
}

// fields are what a pod gets from a marker.
type fields struct {
	condition corev1.ConditionStatus
	label     string
	cost      string
}

var (
	none      = fields{}
	idle      = fields{corev1.ConditionTrue, "idle", "-100"}
	allocated = fields{corev1.ConditionFalse, "allocated", "100"}
)

func fieldsOf(pod *corev1.Pod) fields {
	f := fields{label: pod.Labels[labelState], cost: pod.Annotations[deletionCost]}
	if c := kubelet.Condition(&pod.Status, conditionIdle); c != nil {
		f.condition = c.Status
	}
	return f
}

func (f fields) String() string {
	if f == none {
		return "none of them"
	}
	return fmt.Sprintf("%s=%s, label %s=%s, pod-deletion-cost %s", conditionIdle, f.condition, labelState, f.label, f.cost)
}

// changeStates creates the marker, changes the state of the game server, deletes the marker, and prints how long the pod takes
// to follow.
func (d *demo) changeStates(ctx context.Context) error {
	fmt.Fprintln(d.Out, "\n  change                                the pod has followed after   and has")
	slow := false
	for _, change := range []struct {
		title string
		do    func(context.Context) error
		want  fields
	}{
		{"PodProbeMarker game is created", func(ctx context.Context) error { return d.api.Create(ctx, d.marker) }, idle},
		{"the server reports allocated", func(ctx context.Context) error { return d.becomes(ctx, "allocated") }, allocated},
		{"the server reports idle", func(ctx context.Context) error { return d.becomes(ctx, "idle") }, idle},
		{"allocated again", func(ctx context.Context) error { return d.becomes(ctx, "allocated") }, allocated},
		{"idle again", func(ctx context.Context) error { return d.becomes(ctx, "idle") }, idle},
		{"PodProbeMarker game is deleted", func(ctx context.Context) error { return d.api.Delete(ctx, d.marker) }, none},
	} {
		took, err := d.follow(ctx, change.do, change.want)
		if err != nil {
			return fmt.Errorf("%s: %w", change.title, err)
		}
		fmt.Fprintf(d.Out, "  %-38s %20d ms       %s\n", change.title, took.Milliseconds(), change.want)
		slow = slow || took > timeout.Scaled(target)
	}
	fmt.Fprintln(d.Out, "\n  Counted from when the command was sent until the change has reached this program's watch of the pod.\n"+
		"  The server is probed once a second.")
	if slow {
		return fmt.Errorf("a change took more than %s: is the machine busy?", timeout.Scaled(target))
	}
	return nil
}

// follow makes a change and returns how long the pod took to have what is wanted.
func (d *demo) follow(ctx context.Context, do func(context.Context) error, want fields) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout.Scaled(followTimeout))
	defer cancel()
	pods, err := d.api.WatchPod(ctx, d.pod.Namespace, d.pod.Name)
	if err != nil {
		return 0, err
	}
	defer func() { pods.Stop() }()
	began := time.Now()
	if err := do(ctx); err != nil {
		return 0, err
	}
	var last fields
	for {
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("the pod has %s, not %s: %w", last, want, ctx.Err())
		case event := <-pods.ResultChan():
			pod, ok := event.Object.(*corev1.Pod)
			if !ok { // the API server may end a watch at any time; the next one begins with the pod as it is
				next, err := d.api.WatchPod(ctx, d.pod.Namespace, d.pod.Name)
				if err != nil {
					return 0, err
				}
				pods.Stop()
				pods = next
				continue
			}
			if last = fieldsOf(pod); last == want {
				return time.Since(began), nil
			}
		}
	}
}

// becomes changes the state that the game server reports.
func (d *demo) becomes(ctx context.Context, state string) error {
	_, err := d.RunKubectl(ctx, "", "exec", "--namespace="+d.pod.Namespace, d.pod.Name, "--", "sh", "-c", "echo "+state+" > /tmp/state")
	return err
}

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/hack/patience"
	"github.com/refit-project/refit/hack/place"
)

//go:embed pod.yaml
var podManifest []byte

//go:embed marker.yaml
var markerManifest []byte

const (
	setUpTimeout = 3 * time.Minute
	pollInterval = 200 * time.Millisecond
	// target is what marks may take to follow.
	target        = 2 * time.Second
	followTimeout = time.Minute

	deletionCost  = "controller.kubernetes.io/pod-deletion-cost"
	conditionIdle = "game.example.com/idle"
	labelState    = "game.example.com/state"
)

// demo is the pod and the marker of the demo on a cluster.
type demo struct {
	place.Place
	client client.WithWatch
	pod    *corev1.Pod
	marker *v1alpha1.PodProbeMarker
}

func newDemo(where place.Place) (*demo, error) {
	api, err := place.Connect(where.Kubeconfig, v1alpha1.AddToScheme)
	if err != nil {
		return nil, err
	}
	s := &demo{Place: where, client: api, pod: &corev1.Pod{}, marker: &v1alpha1.PodProbeMarker{}}
	return s, errors.Join(yaml.UnmarshalStrict(podManifest, s.pod), yaml.UnmarshalStrict(markerManifest, s.marker))
}

// setUp makes the pod anew and waits until it runs.
func (d *demo) setUp(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.pod.Namespace}}
	if err := d.client.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make namespace: %w", err)
	}
	for _, object := range []client.Object{d.marker.DeepCopy(), d.pod.DeepCopy()} {
		if err := d.remove(ctx, object); err != nil {
			return err
		}
	}
	// The service account, without which no pod is let in, comes a moment after its namespace.
	err := d.until(ctx, func(ctx context.Context) (bool, error) {
		err := d.client.Create(ctx, d.pod)
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("make pod %s: %w", d.pod.Name, err)
	}
	err = d.until(ctx, func(ctx context.Context) (bool, error) {
		err := d.client.Get(ctx, client.ObjectKeyFromObject(d.pod), d.pod)
		return err == nil && d.pod.Status.Phase == corev1.PodRunning, err
	})
	if err != nil {
		return fmt.Errorf("wait for pod %s to run: %w", d.pod.Name, err)
	}
	return nil
}

func (d *demo) remove(ctx context.Context, object client.Object) error {
	return d.until(ctx, func(ctx context.Context) (bool, error) {
		err := d.client.Delete(ctx, object, client.GracePeriodSeconds(0))
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

func (d *demo) until(ctx context.Context, done wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextTimeout(ctx, pollInterval, patience.Of(setUpTimeout), true, done)
}

// marks are what a marker puts on a pod.
type marks struct {
	condition corev1.ConditionStatus
	label     string
	cost      string
}

var (
	none      = marks{}
	idle      = marks{corev1.ConditionTrue, "idle", "-100"}
	allocated = marks{corev1.ConditionFalse, "allocated", "100"}
)

func marksOf(pod *corev1.Pod) marks {
	m := marks{label: pod.Labels[labelState], cost: pod.Annotations[deletionCost]}
	for _, c := range pod.Status.Conditions {
		if c.Type == conditionIdle {
			m.condition = c.Status
		}
	}
	return m
}

func (m marks) String() string {
	if m == none {
		return "no marks"
	}
	return fmt.Sprintf("%s=%s, label %s=%s, pod-deletion-cost %s", conditionIdle, m.condition, labelState, m.label, m.cost)
}

// play tells the story: marked, turned both ways, unmarked.
func (d *demo) play(ctx context.Context, out io.Writer) error {
	fmt.Fprintln(out, "\n  what was done                         the pod has followed after   and shows")
	slow := false
	for _, act := range []struct {
		title string
		do    func(context.Context) error
		want  marks
	}{
		{"PodProbeMarker game is made", func(ctx context.Context) error { return d.client.Create(ctx, d.marker) }, idle},
		{"players come: the server is allocated", func(ctx context.Context) error { return d.becomes(ctx, "allocated") }, allocated},
		{"the match ends: the server is idle", func(ctx context.Context) error { return d.becomes(ctx, "idle") }, idle},
		{"another match", func(ctx context.Context) error { return d.becomes(ctx, "allocated") }, allocated},
		{"and its end", func(ctx context.Context) error { return d.becomes(ctx, "idle") }, idle},
		{"PodProbeMarker game is deleted", func(ctx context.Context) error { return d.client.Delete(ctx, d.marker) }, none},
	} {
		took, err := d.follow(ctx, act.do, act.want)
		if err != nil {
			return fmt.Errorf("%s: %w", act.title, err)
		}
		fmt.Fprintf(out, "  %-38s %20d ms       %s\n", act.title, took.Milliseconds(), act.want)
		slow = slow || took > target
	}
	fmt.Fprintln(out, "\n  Counted from when the command was sent until the change has reached this program's watch of the pod.\n"+
		"  The server is asked once a second.")
	if slow {
		return fmt.Errorf("a change took more than %s: is the machine busy?", target)
	}
	return nil
}

// follow does something and returns how long the pod took to show what is wanted.
func (d *demo) follow(ctx context.Context, do func(context.Context) error, want marks) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience.Of(followTimeout))
	defer cancel()
	pods, err := d.watch(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { pods.Stop() }()
	began := time.Now()
	if err := do(ctx); err != nil {
		return 0, err
	}
	var last marks
	for {
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("the pod shows %s, not %s: %w", last, want, ctx.Err())
		case event := <-pods.ResultChan():
			pod, ok := event.Object.(*corev1.Pod)
			if !ok { // the API server ends a watch whenever it likes to; the next one begins with the pod as it is
				next, err := d.watch(ctx)
				if err != nil {
					return 0, err
				}
				pods.Stop()
				pods = next
				continue
			}
			if last = marksOf(pod); last == want {
				return time.Since(began), nil
			}
		}
	}
}

func (d *demo) watch(ctx context.Context) (watch.Interface, error) {
	pods, err := d.client.Watch(ctx, &corev1.PodList{}, client.InNamespace(d.pod.Namespace), client.MatchingFields{"metadata.name": d.pod.Name})
	if err != nil {
		return nil, fmt.Errorf("watch pod: %w", err)
	}
	return pods, nil
}

// becomes has the game server say something else.
func (d *demo) becomes(ctx context.Context, state string) error {
	out, err := exec.CommandContext(ctx, d.Kubectl, "exec", "--namespace="+d.pod.Namespace, d.pod.Name, "--",
		"sh", "-c", "echo "+state+" > /tmp/state").CombinedOutput()
	if err != nil {
		return fmt.Errorf("kubectl exec: %w: %s", err, out)
	}
	return nil
}

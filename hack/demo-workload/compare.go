package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/examples/hotupgrade/traffic"
	"github.com/refit-project/refit/internal/kubelet"
)

// result is what became of the pods of a Deployment and of requests to its Service while its template changed.
type result struct {
	took                  time.Duration
	requests, failed      int
	firstFailure          string
	uids, addresses, logs int // that are different
	restarted             int // pods whose container app is another instance
}

// measure has requests sent to the Service of a Deployment while work changes it.
func (d *demo) measure(ctx context.Context, name string, work func() error) (*result, error) {
	load, err := d.load(ctx, name)
	if err != nil {
		return nil, err
	}
	before, err := d.pods(ctx, name)
	if err != nil {
		return nil, err
	}
	r, began := &result{}, time.Now()
	if err := work(); err != nil {
		return nil, err
	}
	r.took = time.Since(began)
	if err := d.quiet(ctx, load, time.Now()); err != nil {
		return nil, err
	}
	after, err := d.pods(ctx, name)
	if err != nil {
		return nil, err
	}
	r.pods(before, after)
	if err := d.end(ctx, load, began, r); err != nil {
		return nil, err
	}
	return r, d.client.Remove(ctx, load)
}

// load starts requests to the Service of a Deployment, and waits until they are answered.
func (d *demo) load(ctx context.Context, name string) (*corev1.Pod, error) {
	service := &corev1.Service{}
	if err := d.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, service); err != nil {
		return nil, fmt.Errorf("get Service %s: %w", name, err)
	}
	image, err := d.Image("hotupgrade-load")
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "load-" + name}}
	pod.Spec.RestartPolicy, pod.Spec.AutomountServiceAccountToken = corev1.RestartPolicyNever, new(false)
	address := fmt.Sprintf("--address=%s:%d", service.Spec.ClusterIP, port)
	pod.Spec.Containers = []corev1.Container{{Name: "load", Image: image, Args: []string{address, "--rate=100", "--limit=30m"}}}
	if err := d.client.CreatePod(ctx, pod); err != nil {
		return nil, err
	}
	return pod, d.quiet(ctx, pod, time.Now())
}

// steady is how many intervals without a failure are waited for before a change, and after it.
const steady = 20

// quiet waits until requests have been answered for some time, from since on.
func (d *demo) quiet(ctx context.Context, load *corev1.Pod, since time.Time) error {
	return d.until(ctx, "requests to be answered", func(ctx context.Context) (bool, error) {
		if err := d.client.Get(ctx, client.ObjectKeyFromObject(load), load); err != nil || load.Status.Phase == corev1.PodPending {
			return false, client.IgnoreNotFound(err)
		}
		seen, err := d.log(ctx, load)
		if err != nil && !errors.Is(err, traffic.ErrUnfinished) {
			return false, err
		}
		answered := 0
		for i := range seen {
			if answered++; seen[i].Failed > 0 || seen[i].Time.Before(since) {
				answered = 0
			}
		}
		return answered >= steady, nil
	})
}

func (d *demo) log(ctx context.Context, load *corev1.Pod) ([]traffic.Interval, error) {
	out, err := d.RunKubectl(ctx, "", "--namespace="+namespace, "logs", load.Name)
	if err != nil {
		return nil, err
	}
	seen, _, err := traffic.Read(strings.NewReader(out))
	return seen, err
}

// end stops the requests and counts those that ended after began.
func (d *demo) end(ctx context.Context, load *corev1.Pod, began time.Time, r *result) error {
	// The command may be killed with the container that it ends.
	_, stopErr := d.RunKubectl(ctx, "", "--namespace="+namespace, "exec", load.Name, "--", "/load", "stop")
	return d.until(ctx, "the end of the requests", func(ctx context.Context) (bool, error) {
		seen, err := d.log(ctx, load)
		if errors.Is(err, traffic.ErrUnfinished) {
			return false, nil
		}
		if err != nil {
			return false, errors.Join(err, stopErr)
		}
		for i := range seen {
			if seen[i].Time.Before(began) {
				continue
			}
			r.requests, r.failed = r.requests+seen[i].Requests(), r.failed+seen[i].Failed
			for _, f := range seen[i].Failures {
				if r.firstFailure == "" {
					r.firstFailure = f.String()
				}
			}
		}
		return true, nil
	})
}

// pods counts what is different.
func (r *result) pods(before, after map[string]*corev1.Pod) {
	addresses := map[string]bool{}
	for _, was := range before {
		addresses[was.Status.PodIP] = true
	}
	for name, is := range after {
		was := before[name]
		if !addresses[is.Status.PodIP] {
			r.addresses++
		}
		if was == nil || was.UID != is.UID {
			r.uids++
		}
		if was == nil || instance(was, "log") != instance(is, "log") {
			r.logs++
		}
		if was == nil || instance(was, "app") != instance(is, "app") {
			r.restarted++
		}
	}
}

// instance is the ID of the instance of a container.
func instance(pod *corev1.Pod, container string) string {
	if status := kubelet.StatusOf(pod, container); status != nil {
		return status.ContainerID
	}
	return ""
}

// compare prints both results side by side.
func (d *demo) compare(inPlace, native *result) error {
	fmt.Fprintf(d.Out, "\n  %-44s %10s %10s\n", "ten pods get another image and more CPU", "in place", "native")
	for _, row := range []struct {
		name  string
		value func(*result) string
	}{
		{"seconds until all pods were available", func(r *result) string { return fmt.Sprintf("%.1f", r.took.Seconds()) }},
		{"requests", func(r *result) string { return fmt.Sprint(r.requests) }},
		{"  failed", func(r *result) string { return fmt.Sprint(r.failed) }},
		{"pods created", func(r *result) string { return fmt.Sprint(r.uids) }},
		{"new IP addresses", func(r *result) string { return fmt.Sprint(r.addresses) }},
		{"containers app started", func(r *result) string { return fmt.Sprint(r.restarted) }},
		{"containers log started, which did not change", func(r *result) string { return fmt.Sprint(r.logs) }},
	} {
		fmt.Fprintf(d.Out, "  %-44s %10s %10s\n", row.name, row.value(inPlace), row.value(native))
	}
	fmt.Fprint(d.Out, explanation)
	if inPlace.uids+inPlace.addresses+inPlace.logs > 0 || inPlace.restarted != replicas {
		return errors.New("the update was not made in place in all pods")
	}
	return inPlace.noneFailed()
}

const explanation = `  Both may have a quarter of the pods unavailable, and drain for 2 s: in place by the readiness gate, native in a preStop hook.
  A native rollout also creates up to a quarter more pods, and does not wait for the pods that drain. Here the images are on
  the nodes and the pods start at once; scheduling, volumes, init containers and the containers that do not change take no time in place.
`

func (r *result) noneFailed() error {
	if r.failed > 0 {
		return fmt.Errorf("%d requests have failed, the first one: %s", r.failed, r.firstFailure)
	}
	return nil
}

// undone prints what became of the image that does not exist.
func (d *demo) undone(r *result) error {
	fmt.Fprintf(d.Out, "\n  an image that does not exist, failurePolicy: Undo\n")
	fmt.Fprintf(d.Out, "  %-44s %10.1f\n  %-44s %10d\n  %-44s %10d\n  %-44s %10d\n  %-44s %10d\n", "seconds until the former template was back", r.took.Seconds(),
		"pods whose container app was restarted", r.restarted, "pods created", r.uids, "requests", r.requests, "  failed", r.failed)
	if r.restarted > replicas/4 || r.uids > 0 {
		return errors.New("more pods were changed than maxUnavailable allows")
	}
	return r.noneFailed()
}

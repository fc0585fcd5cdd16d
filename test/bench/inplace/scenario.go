package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	inplacecli "github.com/refit-project/refit/inplace/cli"
	"github.com/refit-project/refit/inplace/cli/change"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/wait"
	"github.com/refit-project/refit/test/bench/testcluster"
)

// The two images have the same program and different digests; both are on the node before anything is measured.
var images = []string{"docker.io/library/busybox:1.35", "docker.io/library/busybox:1.36"}

// kind is a change that is made to pods, back and forth.
type kind struct {
	name string
	// pod changes what the pods are like; nil leaves them.
	pod    func(pod *corev1.Pod)
	change func(round int) (change.Change, error)
	// anew makes the same change to a pod that is recreated.
	anew func(pod *corev1.Pod, round int)
	// stopped measures a stop of the container through CRI as well, without Refit, to compare with.
	stopped bool
}

var kinds = []kind{
	{name: "image", change: newImage, anew: anewImage},
	{name: "image, probe every 1 s", pod: probed(1), change: newImage, anew: anewImage},
	{name: "image, probe every 10 s", pod: probed(10), change: newImage, anew: anewImage},
	{
		name:   "env from an annotation",
		change: func(round int) (change.Change, error) { return change.Env(nil, []string{"LEVEL=" + level(round)}) },
		anew:   func(pod *corev1.Pod, round int) { pod.Annotations["level"] = level(round) },
		// kubelet does not restart a container for its environment.
		stopped: true,
	},
}

func newImage(round int) (change.Change, error) {
	return change.Image([]string{"app=" + images[round%2]})
}

func anewImage(pod *corev1.Pod, round int) { pod.Spec.Containers[0].Image = images[round%2] }

// probed gives the application a readiness probe with this period in seconds.
func probed(period int32) func(pod *corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: period, ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(port)},
		}}
	}
}

// newPod is a pod of the kind.
func (c *cluster) newPodOf(kind *kind, name string) *corev1.Pod {
	pod := c.newPod(name)
	if kind.pod != nil {
		kind.pod(pod)
	}
	return pod
}

func level(round int) string { return fmt.Sprintf("level-%d", round) }

// measure makes n pods, and changes them in place and anew in turn.
func (c *cluster) measure(ctx context.Context, kind kind, n, rounds int) (result, error) {
	found := result{Kind: kind.name, Pods: n}
	pods := make([]*corev1.Pod, n)
	err := testcluster.Each(ctx, n, func(ctx context.Context, i int) error {
		pods[i] = c.newPodOf(&kind, fmt.Sprintf("web-%d", i))
		return c.create(ctx, pods[i])
	})
	if err != nil {
		return found, fmt.Errorf("make pods: %w", err)
	}
	if err := c.awaitReady(ctx, pods); err != nil {
		return found, err
	}
	for round := 1; round <= rounds; round++ {
		change, err := kind.change(2*round - 1)
		if err != nil {
			return found, err
		}
		err = c.round(ctx, pods, &found.InPlace, func(ctx context.Context, i int) error {
			return inplacecli.Update(ctx, inplacecli.Config{API: c.refit, Output: console.NewOutput(io.Discard, false), Timeout: updateTimeout},
				c.Namespace, inplacecli.Target{Kind: inplacecli.KindPod, Name: pods[i].Name}, change)
		})
		if err != nil {
			return found, fmt.Errorf("%s in place: %w", kind.name, err)
		}
		if kind.stopped {
			if err := c.round(ctx, pods, &found.Stopped, func(ctx context.Context, i int) error { return c.stop(ctx, pods[i].Name) }); err != nil {
				return found, fmt.Errorf("stopped through CRI: %w", err)
			}
		}
		err = c.round(ctx, pods, &found.Anew, func(ctx context.Context, i int) error {
			next := c.newPodOf(&kind, pods[i].Name)
			kind.anew(next, 2*round)
			return c.recreate(ctx, pods[i], next)
		})
		if err != nil {
			return found, fmt.Errorf("%s recreated: %w", kind.name, err)
		}
	}
	return found, testcluster.Each(ctx, n, func(ctx context.Context, i int) error {
		return c.remove(ctx, pods[i].Name, client.GracePeriodSeconds(0))
	})
}

// round does the work for all pods at once, and notes for how long each was not ready.
func (c *cluster) round(ctx context.Context, pods []*corev1.Pod, into *times, work func(context.Context, int) error) error {
	if err := settled(ctx); err != nil {
		return err
	}
	watch, err := c.watch(ctx)
	if err != nil {
		return err
	}
	defer watch.stop()
	asking, enough := context.WithCancel(ctx)
	defer enough()
	unanswered := make([]time.Duration, len(pods))
	var asked sync.WaitGroup
	for i, pod := range pods {
		asked.Go(func() { unanswered[i] = watch.unanswered(asking, pod.Name, len(pods)) })
	}
	began := time.Now()
	group, working := errgroup.WithContext(ctx)
	for i := range pods {
		group.Go(func() error { return work(working, i) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	downs, err := watch.settled(ctx, len(pods))
	if err != nil {
		return err
	}
	into.Unavailable = append(into.Unavailable, downs...)
	enough()
	asked.Wait()
	into.Unanswered = append(into.Unanswered, unanswered...)
	into.Total = append(into.Total, time.Since(began))
	return nil
}

// settle is how long pods are left alone at least before they are changed: kubelet goes on to sync a pod for some seconds
// after it has become ready, and pods in use have been ready for longer.
const settle = 5 * time.Second

// relistPeriod is kubelet's, of the container runtime. A round ends when kubelet has seen a container run, so without a random part
// of the pause each round would begin, and each container be stopped, at the same moment of the period.
const relistPeriod = time.Second

func settled(ctx context.Context) error { return wait.For(ctx, settle+rand.N(relistPeriod)) }

// recreate is what a StatefulSet does: the pod of that name is gone before the next is created.
func (c *cluster) recreate(ctx context.Context, pod, next *corev1.Pod) error {
	if err := c.remove(ctx, pod.Name); err != nil {
		return err
	}
	return c.create(ctx, next)
}

// remove deletes a pod once and waits until it is gone.
func (c *cluster) remove(ctx context.Context, name string, options ...client.DeleteOption) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name}}
	if err := c.API.Delete(ctx, pod, options...); client.IgnoreNotFound(err) != nil {
		return err
	}
	return await(ctx, "pod "+name+" to be gone", func(ctx context.Context) (bool, error) {
		err := c.API.Get(ctx, client.ObjectKeyFromObject(pod), &corev1.Pod{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

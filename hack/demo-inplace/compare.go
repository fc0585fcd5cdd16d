package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/internal/kubelet"
)

// compare updates one pod in place, recreates the other and prints how long each was not ready and did not answer.
func (f *fixture) compare(ctx context.Context) error {
	before := f.pod.DeepCopy()
	inPlace, err := f.measure(ctx, f.pod.Name, func() error {
		if err := f.refit(ctx, "resources", "pod/web", "--container=app", "--limits=memory="+newLimit); err != nil {
			return err
		}
		return f.refit(ctx, "image", "pod/web", "app="+newImage, fmt.Sprintf("--drain-seconds=%d", drainSeconds))
	})
	if err != nil {
		return err
	}
	after := &corev1.Pod{}
	if err := f.api.Get(ctx, client.ObjectKeyFromObject(before), after); err != nil {
		return fmt.Errorf("get pod web: %w", err)
	}
	fmt.Fprintf(f.Out, "\n$ kubectl delete pod web-recreated; kubectl apply -f with the same change\n")
	recreated, err := f.measure(ctx, f.recreated.Name, func() error { return f.recreate(ctx) })
	if err != nil {
		return err
	}
	fmt.Fprintf(f.Out, "\n  pod web        before                                 after\n")
	fmt.Fprintf(f.Out, "  UID            %-38s %s\n", before.UID, same(string(before.UID), string(after.UID)))
	fmt.Fprintf(f.Out, "  IP             %-38s %s\n", before.Status.PodIP, same(before.Status.PodIP, after.Status.PodIP))
	fmt.Fprintf(f.Out, "  app            %-38s %s\n", instance(before, "app"), same(instance(before, "app"), instance(after, "app")))
	fmt.Fprintf(f.Out, "  log            %-38s %s\n", instance(before, "log"), same(instance(before, "log"), instance(after, "log")))
	fmt.Fprintf(f.Out, "\n  seconds        in place  recreated\n")
	for _, row := range []struct {
		name          string
		in, recreated time.Duration
	}{{"not ready", inPlace.notReady, recreated.notReady}, {"no answer", inPlace.unanswered, recreated.unanswered}} {
		fmt.Fprintf(f.Out, "  %-14s %8.2f  %9.2f   %.2f times\n", row.name, row.in.Seconds(), row.recreated.Seconds(), row.in.Seconds()/row.recreated.Seconds())
	}
	fmt.Fprintf(f.Out, "  Both drain for %d s, in which the pod is not ready and answers, and have the new image on the node.\n", drainSeconds)
	if before.UID != after.UID || before.Status.PodIP != after.Status.PodIP || instance(before, "log") != instance(after, "log") {
		return errors.New("the update changed the UID, the IP address or the other container")
	}
	return nil
}

func same(before, after string) string {
	if before == after {
		return "the same"
	}
	return after
}

// instance is the beginning of the ID of the container's instance.
func instance(pod *corev1.Pod, container string) string {
	if status := kubelet.StatusOf(pod, container); status != nil {
		return status.ContainerID[:min(len(status.ContainerID), 25)]
	}
	return "none"
}

// outage is for how long a pod, or the next one of its name, was not ready and did not answer.
type outage struct{ notReady, unanswered time.Duration }

func (f *fixture) measure(ctx context.Context, pod string, work func() error) (outage, error) {
	asking, enough := context.WithCancel(ctx)
	defer enough()
	var found outage
	var asked sync.WaitGroup
	asked.Go(func() { found.unanswered = f.ask.unanswered(asking, pod) })
	notReady, err := f.unavailable(ctx, pod, work)
	found.notReady = notReady
	enough()
	asked.Wait()
	return found, err
}

// unavailable is for how long the pod of that name, or the next one, is not ready until the work is done.
func (f *fixture) unavailable(ctx context.Context, name string, work func() error) (time.Duration, error) {
	changes, err := f.api.WatchPod(ctx, f.pod.Namespace, name)
	if err != nil {
		return 0, err
	}
	defer changes.Stop()
	done := make(chan error, 1)
	go func() { done <- work() }()
	var total time.Duration
	var since time.Time
	for ended := false; !ended || !since.IsZero(); {
		select {
		case err := <-done:
			if err != nil {
				return 0, err
			}
			ended = true
		case event, ok := <-changes.ResultChan():
			pod, isPod := event.Object.(*corev1.Pod)
			if !ok || !isPod {
				return 0, fmt.Errorf("watch pod %s: ended", name)
			}
			up := event.Type != watch.Deleted && kubelet.Ready(pod) && pod.DeletionTimestamp == nil
			switch {
			case up && !since.IsZero():
				total, since = total+time.Since(since), time.Time{}
			case !up && since.IsZero():
				since = time.Now()
			}
		}
	}
	return total, nil
}

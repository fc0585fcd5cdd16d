package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// play updates one pod in place and makes the other anew, and compares.
func (s *scene) play(ctx context.Context, out io.Writer) error {
	before := s.pod.DeepCopy()
	inPlace, err := s.measure(ctx, s.pod.Name, func() error {
		if err := s.refit(ctx, out, "resources", "pod/web", "--container=app", "--limits=memory="+newLimit); err != nil {
			return err
		}
		return s.refit(ctx, out, "image", "pod/web", "app="+newImage, fmt.Sprintf("--drain-seconds=%d", drainSeconds))
	})
	if err != nil {
		return err
	}
	after := &corev1.Pod{}
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(before), after); err != nil {
		return fmt.Errorf("get pod web: %w", err)
	}
	fmt.Fprintf(out, "\n$ kubectl delete pod web-anew; kubectl apply -f with the same change\n")
	anew, err := s.measure(ctx, s.anew.Name, func() error { return s.recreate(ctx) })
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n  pod web        before                                 after\n")
	fmt.Fprintf(out, "  UID            %-38s %s\n", before.UID, same(string(before.UID), string(after.UID)))
	fmt.Fprintf(out, "  IP             %-38s %s\n", before.Status.PodIP, same(before.Status.PodIP, after.Status.PodIP))
	fmt.Fprintf(out, "  app            %-38s %s\n", short(before, "app"), same(short(before, "app"), short(after, "app")))
	fmt.Fprintf(out, "  log            %-38s %s\n", short(before, "log"), same(short(before, "log"), short(after, "log")))
	fmt.Fprintf(out, "\n  seconds        in place  recreated\n")
	for _, row := range []struct {
		name     string
		in, anew time.Duration
	}{{"not ready", inPlace.notReady, anew.notReady}, {"no answer", inPlace.unanswered, anew.unanswered}} {
		fmt.Fprintf(out, "  %-14s %8.2f  %9.2f   %.2f times\n", row.name, row.in.Seconds(), row.anew.Seconds(), row.in.Seconds()/row.anew.Seconds())
	}
	fmt.Fprintf(out, "  Both drain for %d s, in which the pod is not ready and answers, and have the new image on the node.\n", drainSeconds)
	if before.UID != after.UID || before.Status.PodIP != after.Status.PodIP || short(before, "log") != short(after, "log") {
		return errors.New("more has changed than was to")
	}
	return nil
}

func same(before, after string) string {
	if before == after {
		return "the same"
	}
	return after
}

// short is the beginning of the ID of the container's instance.
func short(pod *corev1.Pod, container string) string {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == container {
			return status.ContainerID[:min(len(status.ContainerID), 25)]
		}
	}
	return "none"
}

// downtime is for how long a pod, or the next one of its name, was not ready and did not answer.
type downtime struct{ notReady, unanswered time.Duration }

func (s *scene) measure(ctx context.Context, pod string, work func() error) (downtime, error) {
	asking, enough := context.WithCancel(ctx)
	defer enough()
	var found downtime
	var asked sync.WaitGroup
	asked.Go(func() { found.unanswered = s.ask.unanswered(asking, pod) })
	notReady, err := s.unavailable(ctx, pod, work)
	found.notReady = notReady
	enough()
	asked.Wait()
	return found, err
}

// unavailable is for how long the pod of that name, or the next one, is not ready until the work is done.
func (s *scene) unavailable(ctx context.Context, name string, work func() error) (time.Duration, error) {
	changes, err := s.client.Watch(ctx, &corev1.PodList{}, client.InNamespace(s.pod.Namespace), client.MatchingFields{"metadata.name": name})
	if err != nil {
		return 0, fmt.Errorf("watch pod %s: %w", name, err)
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
			up := event.Type != watch.Deleted && isReady(pod)
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

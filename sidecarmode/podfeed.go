package sidecarmode

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apitypes "k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kube/ownpod"
	"github.com/refit-project/refit/internal/kubelet"
)

const (
	// firstReadTimeout bounds the wait for the pod at start. Later the watch delivers it.
	firstReadTimeout = 10 * time.Second
	// readTimeout bounds a read of the pod for a waiting caller.
	readTimeout = 3 * time.Second
)

func types(uid string) apitypes.UID { return apitypes.UID(uid) }

// podFeed has the last known state of our pod, and reports its changes.
type podFeed struct {
	mu      sync.Mutex
	pod     *corev1.Pod
	waiting map[chan struct{}]bool
}

func newPodFeed() *podFeed { return &podFeed{waiting: map[chan struct{}]bool{}} }

// latest returns the last known pod; nil until it has been read.
func (f *podFeed) latest() *corev1.Pod {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pod
}

// changes returns a channel that receives a token after each change, and a function that stops it.
func (f *podFeed) changes() (<-chan struct{}, func()) {
	tokens := make(chan struct{}, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting[tokens] = true
	return tokens, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.waiting, tokens)
	}
}

func (f *podFeed) set(pod *corev1.Pod) {
	pod.ManagedFields = nil
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pod = pod
	for tokens := range f.waiting {
		select {
		case tokens <- struct{}{}:
		default:
		}
	}
}

// read reads the pod now.
func (f *podFeed) read(ctx context.Context, client *ownpod.Client, pod identity.Pod) error {
	seen, err := client.Pod(ctx, pod)
	if err != nil {
		return err
	}
	f.set(seen)
	return nil
}

// reader returns a function that reads the pod within readTimeout; nil without a client.
func (f *podFeed) reader(client *ownpod.Client, pod identity.Pod) func(context.Context) error {
	if client == nil {
		return nil
	}
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		return f.read(ctx, client, pod)
	}
}

// readFirst reads the pod for the first time. A missing permission does not stop the sidecar. It returns whether the pod could
// not be read for a reason that may pass.
func (f *podFeed) readFirst(ctx context.Context, client *ownpod.Client, pod identity.Pod, logger *slog.Logger) (later bool) {
	ctx, cancel := context.WithTimeout(ctx, firstReadTimeout)
	defer cancel()
	for {
		err := f.read(ctx, client, pod)
		if err == nil {
			return false
		}
		logger.Warn("pod not read", "pod", pod, "err", err)
		if errors.Is(err, ownpod.ErrForbidden) || ctx.Err() != nil {
			return !errors.Is(err, ownpod.ErrForbidden)
		}
		timer := time.NewTimer(time.Second)
		select {
		case <-ctx.Done():
			timer.Stop()
			return true
		case <-timer.C:
		}
	}
}

// follow watches the pod until ctx ends.
func (f *podFeed) follow(ctx context.Context, client *ownpod.Client, pod identity.Pod, logger *slog.Logger) {
	selection := ownpod.Selection{Of: ownpod.PodReference(pod)}
	ownpod.Follow(ctx, client, selection, func(items map[string]*corev1.Pod) {
		if seen := items[pod.Name]; seen != nil {
			f.set(seen)
		}
	}, ownpod.Log(logger, selection))
}

// othersStarted reports whether all regular containers except ours have been started.
func othersStarted(pod *corev1.Pod, own string) bool {
	for _, c := range pod.Spec.Containers {
		if c.Name == own {
			continue
		}
		s := kubelet.StatusIn(pod.Status.ContainerStatuses, c.Name)
		if s == nil || (s.Started == nil || !*s.Started) && s.State.Terminated == nil && s.LastTerminationState.Terminated == nil {
			return false
		}
	}
	return true
}

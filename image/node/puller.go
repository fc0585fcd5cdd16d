package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/image/queue"
)

const (
	// progressInterval is the interval between checks of the progress of a pull. After progressQuick checks it is
	// progressSlow.
	progressInterval = time.Second
	progressSlow     = 3 * time.Second
	progressQuick    = 15
	pulledBy         = "refit-daemon"
)

// puller implements queue.Puller with the container runtime.
type puller struct {
	config  Config
	metrics *metrics
}

// Present implements queue.Puller.
func (p puller) Present(ctx context.Context, reference image.Reference) (string, error) {
	full, err := reference.Full()
	if err != nil {
		return "", err
	}
	id, err := p.config.Runtime.ImageID(ctx, full)
	if err != nil {
		return "", fmt.Errorf("look for the image on the node: %w", err)
	}
	return id, nil
}

// Pull implements queue.Puller. It tries each of the credentials for the image. If there are none, it pulls anonymously.
func (p puller) Pull(ctx context.Context, want image.Want, report func(pulled, total int64)) (queue.Pulled, error) {
	full, err := want.Full()
	if err != nil {
		return queue.Pulled{}, err
	}
	name, err := want.Location()
	if err != nil {
		return queue.Pulled{}, err
	}
	auths, secrets, missing := p.credentials(ctx, want, name)
	stop := p.meter(ctx, name, want, report)
	defer stop()
	request := cri.PullRequest{Image: full, Annotations: map[string]string{}}
	if want.Sandbox != nil {
		request.Labels = want.Sandbox.Labels
		maps.Copy(request.Annotations, want.Sandbox.Annotations)
	}
	request.Annotations[v1beta1.AnnotationPullingImageBy] = pulledBy
	if len(auths) == 0 {
		auths = []cri.Auth{{}}
	}
	var i int
	for i, request.Auth = range auths {
		id, err := p.config.Runtime.PullImage(ctx, request)
		if err == nil {
			return queue.Pulled{ID: id, WithSecret: i < secrets}, nil
		}
		hidden := errors.Is(err, cri.ErrNotFound) && i+1 < len(auths) // some registries hide what a user may not read
		switch {
		case hidden:
		case errors.Is(err, cri.ErrUnauthorized):
			missing = append(missing, err)
		default:
			return queue.Pulled{}, reason(err)
		}
	}
	return queue.Pulled{}, reason(errors.Join(missing...))
}

// reason converts an error to an error of package queue.
func reason(err error) error {
	for sentinel, means := range map[error]error{
		cri.ErrUnauthorized: queue.ErrAuthentication, cri.ErrNotFound: queue.ErrMissing, cri.ErrTooManyRequests: queue.ErrTooManyRequests,
		cri.ErrDiskFull: queue.ErrDiskFull, cri.ErrDigestMismatch: queue.ErrDigestMismatch,
	} {
		if errors.Is(err, sentinel) {
			return as{err, means}
		}
	}
	return err
}

// as is an error that also matches another error, but keeps its own text.
type as struct {
	error
	means error
}

func (e as) Unwrap() []error { return []error{e.error, e.means} }

// meter reports the progress of the pull, if the runtime reports it, until the returned function is called.
func (p puller) meter(ctx context.Context, name image.Location, want image.Want, report func(pulled, total int64)) (stop func()) {
	digest := ""
	if want.ByDigest() {
		digest = want.Tag
	}
	// Times of the content store are from this node's clock. Subtract a second for their resolution.
	read := p.config.Runtime.MeterPull(name.Registry, name.Path, digest, time.Now().Add(-time.Second))
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() {
		interval := progressInterval
		for looks := 1; ; looks++ {
			if looks > progressQuick {
				interval = progressSlow
			}
			timer := time.NewTimer(interval)
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
			}
			progress, err := read(ctx)
			switch {
			case errors.Is(err, cri.ErrUnsupported):
				return
			case err != nil && ctx.Err() == nil:
				p.config.Logger.Debug("progress of a pull not read", "image", want.String(), "err", err)
			case err == nil && progress.Total > 0:
				report(progress.Pulled, progress.Total)
			}
		}
	})
	return func() { cancel(); work.Wait() }
}

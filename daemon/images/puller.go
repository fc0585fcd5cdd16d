package images

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
)

const (
	// progressInterval is between looks at how far a pull is; later progressSlow, after progressQuick looks.
	progressInterval = time.Second
	progressSlow     = 3 * time.Second
	progressQuick    = 15
	pulledBy         = "refit-daemon"
)

// puller implements image.Puller with the container runtime.
type puller struct {
	config  Config
	metrics *metrics
}

// Present implements image.Puller.
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

// Pull implements image.Puller. Each of the credentials for the image is tried; without any the pull is anonymous.
func (p puller) Pull(ctx context.Context, want image.Want, report func(pulled, total int64)) (string, error) {
	full, err := want.Full()
	if err != nil {
		return "", err
	}
	name, err := want.Location()
	if err != nil {
		return "", err
	}
	auths, missing := p.credentials(ctx, want.Secrets, name)
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
	for _, request.Auth = range auths {
		id, err := p.config.Runtime.PullImage(ctx, request)
		if err == nil {
			return id, nil
		}
		if !errors.Is(err, cri.ErrUnauthorized) {
			return "", reason(err)
		}
		missing = append(missing, err)
	}
	return "", reason(errors.Join(missing...))
}

// reason puts a failure into the words of package image.
func reason(err error) error {
	for sentinel, means := range map[error]error{
		cri.ErrUnauthorized: image.ErrAuthentication, cri.ErrNotFound: image.ErrMissing, cri.ErrTooManyRequests: image.ErrTooManyRequests,
		cri.ErrDiskFull: image.ErrDiskFull, cri.ErrDigestMismatch: image.ErrDigestMismatch,
	} {
		if errors.Is(err, sentinel) {
			return as{err, means}
		}
	}
	return err
}

// as is an error that is another one too, in its own words.
type as struct {
	error
	means error
}

func (e as) Unwrap() []error { return []error{e.error, e.means} }

// meter reports how far the pull is until the returned function is called, if the runtime tells.
func (p puller) meter(ctx context.Context, name image.Location, want image.Want, report func(pulled, total int64)) (stop func()) {
	digest := ""
	if want.ByDigest() {
		digest = want.Tag
	}
	// Times of the content store are of this node's clock; a second covers their resolution.
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

package cri

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/refit-project/refit/cri/contentstore"
)

// Reasons why an image is not pulled, in addition to ErrNotFound for an image that the registry does not have. CRI has no
// codes for them: they are recognized by the messages of containerd, of CRI-O and of cri-api's errors.
var (
	// ErrUnauthorized means that the registry requires other credentials.
	ErrUnauthorized = errors.New("authentication required or access denied")
	// ErrTooManyRequests means that the registry limits the rate of requests.
	ErrTooManyRequests = errors.New("too many requests")
	// ErrDiskFull means that there is no space on the node.
	ErrDiskFull = errors.New("no space left on device")
	// ErrDigestMismatch means that the content of the registry has another digest than requested.
	ErrDigestMismatch = errors.New("digest mismatch")
)

// Auth are credentials for a registry. The zero value means an anonymous pull.
type Auth struct {
	Username, Password string
	// Auth is the base64 of "username:password", instead of both.
	Auth string
	// ServerAddress is the registry that the credentials are for.
	ServerAddress string
	IdentityToken string
	RegistryToken string
}

// PullRequest has the parameters of PullImage.
type PullRequest struct {
	// Image is as in a container's image field, including the registry.
	Image string
	Auth  Auth
	// Labels and Annotations of the sandbox that the image is pulled for; a runtime may choose a snapshotter by them.
	Labels, Annotations map[string]string
}

// ImageID returns the ID of an image on the node; "" and no error if the node does not have it.
func (c *Client) ImageID(ctx context.Context, image string) (string, error) {
	res, err := c.images.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: image}})
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	return clip(res.GetImage().GetId()), err
}

// PullImage pulls an image and returns its ID. It takes as long as ctx allows; the end of ctx also ends the pull in the
// runtime.
func (c *Client) PullImage(ctx context.Context, request PullRequest) (string, error) {
	pull := &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: request.Image}}
	if a := request.Auth; a != (Auth{}) {
		pull.Auth = &runtimeapi.AuthConfig{
			Username: a.Username, Password: a.Password, Auth: a.Auth, ServerAddress: a.ServerAddress,
			IdentityToken: a.IdentityToken, RegistryToken: a.RegistryToken,
		}
	}
	if len(request.Labels)+len(request.Annotations) > 0 {
		pull.SandboxConfig = &runtimeapi.PodSandboxConfig{
			Metadata: &runtimeapi.PodSandboxMetadata{}, Labels: request.Labels, Annotations: request.Annotations,
		}
	}
	res, err := c.images.PullImage(ctx, pull)
	if err != nil {
		return "", err
	}
	return clip(res.GetImageRef()), nil
}

// pullError translates the gRPC error of a pull. The URL that a layer is redirected to may contain a signature.
func pullError(ctx context.Context, image string, err error) error {
	text := urlQuery.ReplaceAllString(status.Convert(err).Message(), "?…")
	sentinel := sentinelOf(ctx, err)
	said := withoutName(text, image)
	for _, words := range pullWords {
		if words.pattern.MatchString(said) {
			sentinel = words.means
			break
		}
	}
	text = reason(text)
	if status.Code(err) == codes.Canceled && ctx.Err() == nil {
		return fmt.Errorf("pull %s: %w: it cancelled the pull, as it does when a registry sends nothing for image_pull_progress_timeout: %s", clip(image), ErrUnavailable, clip(text))
	}
	if sentinel != nil {
		return fmt.Errorf("pull %s: %w: %s", clip(image), sentinel, clip(text))
	}
	if code := status.Code(err); code != codes.Unknown {
		return fmt.Errorf("pull %s: %s: %s", clip(image), code, clip(text))
	}
	return fmt.Errorf("pull %s: %s", clip(image), clip(text))
}

// withoutName removes the image's name from a message, because a repository may be called "unauthorized".
func withoutName(text, image string) string {
	name, _, _ := strings.Cut(image, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name = name[:i]
	}
	_, path, _ := strings.Cut(name, "/")
	return strings.NewReplacer(name, "", "/v2/"+path+"/", "/").Replace(text)
}

var urlQuery = regexp.MustCompile(`\?[^\s"]*`)

var pullWords = []struct {
	pattern *regexp.Regexp
	means   error
}{
	{regexp.MustCompile(`(?i)no space left on device|disk quota exceeded`), ErrDiskFull},
	{regexp.MustCompile(`(?i)unexpected commit digest|digest mismatch|does not match( the)? digest|digest verification|invalid digest|unexpected digest`), ErrDigestMismatch},
	{regexp.MustCompile(`(?i)\b429\b|too ?many ?requests`), ErrTooManyRequests},
	{regexp.MustCompile(`(?i)\b(401|403)\b|unauthorized|forbidden|access denied|authorization failed|failed to authorize|insufficient_scope|no basic auth credentials`), ErrUnauthorized},
	{regexp.MustCompile(`(?i)\b404\b|manifest unknown|name unknown|: not found$`), ErrNotFound},
}

// reason removes what containerd puts before the cause, which names the image up to three times.
func reason(text string) string {
	for _, prefix := range []string{"failed to pull and unpack image ", "failed to resolve reference ", "failed to resolve image ", "failed to copy: ", "failed to pull image "} {
		rest, ok := strings.CutPrefix(text, prefix)
		if !ok {
			continue
		}
		if strings.HasPrefix(rest, `"`) {
			if _, after, ok := strings.Cut(rest[1:], `": `); ok {
				rest = after
			}
		}
		text = rest
	}
	return text
}

// Progress of a pull in transferred, compressed bytes. The zero value means that nothing is known yet.
type Progress = contentstore.Progress

// MeterPull returns a function that returns the progress of a pull, see contentstore.MeterPull. Its error is ErrUnsupported
// if the runtime is not containerd. The function is not safe for concurrent use.
func (c *Client) MeterPull(registry, repository, digest string, since time.Time) func(context.Context) (Progress, error) {
	read := contentstore.MeterPull(c.content, callError, registry, repository, digest, since)
	return func(ctx context.Context) (Progress, error) {
		progress, err := read(ctx)
		if errors.Is(err, contentstore.ErrTooLarge) {
			err = fmt.Errorf("%w: %w", ErrExhausted, err)
		}
		return progress, err
	}
}

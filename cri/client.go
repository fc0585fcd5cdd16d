package cri

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"time"

	contentapi "github.com/containerd/containerd/api/services/content/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// maxMessage is the largest accepted response, as in kubelet: the list of a full node fits.
const maxMessage = 16 << 20

// Client talks to one runtime. It is safe for concurrent use; a call that hangs does not delay others.
type Client struct {
	cfg     Config
	conn    *grpc.ClientConn
	runtime runtimeapi.RuntimeServiceClient
	images  runtimeapi.ImageServiceClient
	content contentapi.ContentClient
}

// New returns a client without connecting to the socket, which need not exist yet: calls return ErrUnavailable until a
// server listens on it. A restarted runtime is found again within about two seconds, or at the first call after that.
func New(cfg Config) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("cri: %w", err)
	}
	cfg = cfg.withDefaults()
	socket, err := socketPath(cfg.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("cri: %w", err)
	}
	c := &Client{cfg: cfg}
	var options []grpc.DialOption
	if cfg.Stats != nil {
		options = append(options, grpc.WithStatsHandler(cfg.Stats))
	}
	options = append(options,
		// Access to a CRI socket is controlled by its file mode only.
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithUnaryInterceptor(c.intercept),
	)
	c.conn, err = grpc.NewClient((&url.URL{Scheme: "unix", Path: socket}).String(), options...)
	if err != nil {
		return nil, fmt.Errorf("cri: connect %s: %w", socket, err)
	}
	c.runtime = runtimeapi.NewRuntimeServiceClient(c.conn)
	c.images = runtimeapi.NewImageServiceClient(c.conn)
	c.content = contentapi.NewContentClient(c.conn)
	return c, nil
}

// Close closes the connection and ends all calls.
func (c *Client) Close() error { return c.conn.Close() }

// Version identifies the runtime.
type Version struct {
	RuntimeName    string // the scheme of container IDs on this node, see identity.ContainerID
	RuntimeVersion string
	APIVersion     string
}

// Version asks the runtime for its name and version. It is the cheapest call, and the check whether the runtime responds.
func (c *Client) Version(ctx context.Context) (Version, error) {
	res, err := c.runtime.Version(ctx, &runtimeapi.VersionRequest{Version: "v1"})
	if err != nil {
		return Version{}, err
	}
	return Version{
		RuntimeName:    clip(res.GetRuntimeName()),
		RuntimeVersion: clip(res.GetRuntimeVersion()),
		APIVersion:     clip(res.GetRuntimeApiVersion()),
	}, nil
}

// intercept wraps every call: it sets the deadline, translates the error and calls the metrics hook. The generated client
// returns its error unchanged.
func (c *Client) intercept(
	ctx context.Context, method string, req, reply any,
	cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	callers := ctx
	if limit := c.limit(req); limit > 0 {
		limited, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		ctx = limited
	}
	name := path.Base(method)
	start := time.Now()
	err := invoke(ctx, method, req, reply, cc, opts...)
	if err != nil {
		awaitPassed(callers)
	}
	if pull, ok := req.(*runtimeapi.PullImageRequest); ok && err != nil {
		err = pullError(ctx, pull.GetImage().GetImage(), err)
	} else {
		err = callError(ctx, name, subject(req), err)
	}
	c.cfg.OnCall(name, time.Since(start), err)
	return err
}

// awaitPassed waits until ctx has ended, if its deadline has passed. The runtime knows the deadline and may end the call
// before the timer of ctx fires; callers that ask ctx why the call has failed would find no reason.
func awaitPassed(ctx context.Context) {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		<-ctx.Done()
	}
}

// limit returns how long a call may take; 0 means as long as ctx allows. A call with a duration in its request gets that
// and a margin, so that the runtime reports the timeout first, with its reason.
func (c *Client) limit(req any) time.Duration {
	switch r := req.(type) {
	case *runtimeapi.StopContainerRequest:
		return seconds(r.GetTimeout()) + c.cfg.StopMargin
	case *runtimeapi.ExecSyncRequest:
		return seconds(r.GetTimeout()) + c.cfg.ExecMargin
	case *runtimeapi.PullImageRequest:
		return 0
	default:
		return c.cfg.CallTimeout
	}
}

// subject returns the ID in a request, if it has one.
func subject(req any) string {
	switch r := req.(type) {
	case interface{ GetContainerId() string }:
		return r.GetContainerId()
	case interface{ GetPodSandboxId() string }:
		return r.GetPodSandboxId()
	default:
		return ""
	}
}

// maxSeconds prevents overflows with durations of others; it is about thirty years.
const maxSeconds = 1e9

func seconds(n int64) time.Duration { return time.Duration(min(n, maxSeconds)) * time.Second }

// wholeSeconds converts to CRI's unit. It rounds up, so that a grace period is never shortened.
func wholeSeconds(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return min(int64((d-1)/time.Second)+1, maxSeconds)
}

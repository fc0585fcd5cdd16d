package criproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"net/url"
	"os"
	"path"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Config says what the proxy connects.
type Config struct {
	Listen  string // socket to make; one that is there already is replaced
	Runtime string // socket of the real runtime, which may come and go
	Record  string // file to append a JSON line per call to
	Faults  string // file of faults, read again when it changes; it may be missing
	// Interceptor is called for every call; optional.
	Interceptor Interceptor
	Logger      *slog.Logger
}

// Interceptor gets each call before it is passed on, and of each of its answers before that is passed back.
// It may block, which holds up this call alone, and it may change the answer, which it returns.
type Interceptor interface {
	Came(call Line)
	Answered(call Line, answer []byte) []byte
}

// Validate reports all faults at once.
func (c Config) Validate() error {
	var errs []error
	for name, p := range map[string]string{"listen": c.Listen, "runtime": c.Runtime, "record": c.Record} {
		if p == "" {
			errs = append(errs, fmt.Errorf("%s: must not be empty", name))
		}
	}
	if c.Listen != "" && c.Listen == c.Runtime {
		errs = append(errs, fmt.Errorf("listen and runtime: both are %s", c.Listen))
	}
	return errors.Join(errs...)
}

// Run serves until ctx ends, breaks off the calls under way, and returns nil.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	record, err := openRecord(cfg.Record)
	if err != nil {
		return err
	}
	defer record.close()
	conn, err := dial(cfg.Runtime)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing is lost with it
	listener, err := listen(ctx, cfg.Listen)
	if err != nil {
		return err
	}
	p := &proxy{runtime: conn, record: record, faults: newFaults(cfg.Faults, cfg.Logger), interceptor: cfg.Interceptor}
	server := grpc.NewServer(
		grpc.ForceServerCodecV2(codec{}),
		grpc.UnknownServiceHandler(p.handle),
		grpc.MaxRecvMsgSize(math.MaxInt32), grpc.MaxSendMsgSize(math.MaxInt32),
		grpc.WaitForHandlers(true),
	)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return server.Serve(peerListener{listener}) })
	group.Go(func() error {
		<-ctx.Done()
		server.Stop()
		return nil
	})
	if err := group.Wait(); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serve %s: %w", cfg.Listen, err)
	}
	return nil
}

func dial(socket string) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient((&url.URL{Scheme: "unix", Path: socket}).String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(codec{}),
			grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32),
		),
		// The proxy must not add to what a restart of the runtime costs.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.2, MaxDelay: 200 * time.Millisecond},
			MinConnectTimeout: time.Second,
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("connect %s: %w", socket, err)
	}
	return conn, nil
}

// listen takes over from an earlier proxy's socket, and from nothing else that may be at that path.
func listen(ctx context.Context, socket string) (net.Listener, error) {
	if info, err := os.Lstat(socket); err == nil && info.Mode().Type() == fs.ModeSocket {
		if err := os.Remove(socket); err != nil {
			return nil, fmt.Errorf("replace socket: %w", err)
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return listener, nil
}

type proxy struct {
	runtime     *grpc.ClientConn
	record      *record
	faults      *faults
	interceptor Interceptor
}

// handle is one call. Every CRI call sends one message and gets one or, from a stream, many.
func (p *proxy) handle(_ any, stream grpc.ServerStream) error {
	full, ok := grpc.MethodFromServerStream(stream)
	if !ok {
		return status.Error(codes.Internal, "criproxy: call without a method")
	}
	var req frame
	if err := stream.RecvMsg(&req); err != nil {
		return err
	}
	line := lineOf(stream.Context(), full, req, time.Now())
	err := p.pass(stream, full, req, line)
	p.record.add(line.ended(err))
	return err
}

func (p *proxy) pass(stream grpc.ServerStream, full string, req frame, line Line) error {
	if p.interceptor != nil {
		p.interceptor.Came(line)
	}
	fault := p.faults.strike(line.Method)
	if !fault.After {
		if err := fault.apply(stream.Context()); err != nil {
			return err
		}
	}
	answered := func(answer frame) (frame, error) {
		if p.interceptor != nil {
			answer = p.interceptor.Answered(line, answer)
		}
		if fault.After {
			return answer, fault.apply(stream.Context())
		}
		return answer, nil
	}
	return p.forward(stream, full, req, answered)
}

func (p *proxy) forward(stream grpc.ServerStream, full string, req frame, answered func(frame) (frame, error)) error {
	// The deadline comes along with the context; the metadata does not by itself.
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		ctx = metadata.NewOutgoingContext(ctx, md)
	}
	upstream, err := p.runtime.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, full)
	if err != nil {
		return err
	}
	// An error of sending is told in full by what comes back.
	if err := upstream.SendMsg(&req); err == nil {
		_ = upstream.CloseSend()
	}
	for {
		var answer frame
		err := upstream.RecvMsg(&answer)
		if errors.Is(err, io.EOF) {
			stream.SetTrailer(upstream.Trailer())
			return nil
		}
		if err != nil {
			return err
		}
		if answer, err = answered(answer); err != nil {
			return err
		}
		if p.faults.drops(path.Base(full)) {
			continue
		}
		if err := stream.SendMsg(&answer); err != nil {
			return err
		}
	}
}

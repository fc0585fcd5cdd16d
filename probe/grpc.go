package probe

import (
	"context"
	"crypto/tls"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// grpcIdle is how long a connection is kept without a probe: as long as probes every few seconds need it. One for
// each of hundreds of probes a minute would take more memory than it saves of CPU.
const grpcIdle = 6 * time.Second

// GRPC asks the health service (grpc.health.v1) at Address, "host:port", for Service; the empty service is the
// server as a whole. Without TLS it speaks plain text, as Kubernetes' probes do. Its connection is kept for the next probe,
// unless a probe fails, and has to be closed by Close.
type GRPC struct {
	Address, Service string
	TLS              *tls.Config

	conn *grpc.ClientConn // nil: there is none
}

// Probe implements Prober. The message is the serving status.
func (g *GRPC) Probe(ctx context.Context) Outcome {
	kept := g.conn != nil
	answer, err := g.ask(ctx)
	if kept && status.Code(err) == codes.Unavailable { // it may be the connection that is gone
		answer, err = g.ask(ctx)
	}
	switch {
	case status.Code(err) == codes.Unimplemented:
		return failed("the server has no health service")
	case status.Code(err) == codes.NotFound:
		return failed("the server does not know service %q", g.Service)
	case err != nil:
		return failed("%s", reason(ctx, err))
	case answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING:
		return failed("%s", answer.GetStatus())
	}
	return Outcome{State: Succeeded, Message: answer.GetStatus().String()}
}

// ask connects if it has to. A connection on which something went wrong is not used again: grpc would wait before it
// connects again, and a probe would fail without having asked.
func (g *GRPC) ask(ctx context.Context) (*grpc_health_v1.HealthCheckResponse, error) {
	if g.conn == nil {
		var err error
		if g.conn, err = g.dial(); err != nil {
			return nil, err
		}
	}
	answer, err := grpc_health_v1.NewHealthClient(g.conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: g.Service})
	if code := status.Code(err); err != nil && code != codes.Unimplemented && code != codes.NotFound {
		_ = g.Close()
	}
	return answer, err
}

func (g *GRPC) dial() (*grpc.ClientConn, error) {
	creds := insecure.NewCredentials()
	if g.TLS != nil {
		creds = credentials.NewTLS(g.TLS)
	}
	return grpc.NewClient("passthrough:///"+g.Address,
		grpc.WithTransportCredentials(creds), grpc.WithNoProxy(), grpc.WithDisableServiceConfig(),
		grpc.WithUserAgent("refit-probe"), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxBody)),
		grpc.WithIdleTimeout(grpcIdle),
		grpc.WithReadBufferSize(0), grpc.WithWriteBufferSize(0)) // requests and answers are a few bytes
}

// Close implements io.Closer: it closes the connection that is kept.
func (g *GRPC) Close() error {
	conn := g.conn
	if conn == nil {
		return nil
	}
	g.conn = nil
	return conn.Close()
}

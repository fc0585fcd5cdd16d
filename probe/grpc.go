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

// grpcIdle is how long an idle connection is kept. It is long enough for probes every few seconds. Keeping a connection
// for each of hundreds of probes with longer periods would take more memory than it saves CPU.
const grpcIdle = 6 * time.Second

// GRPC calls the health service (grpc.health.v1) at Address, "host:port", for Service; an empty Service means the
// server as a whole. Without TLS it uses plain text, as Kubernetes' probes do. It keeps its connection for the next
// probe unless a probe fails. Close closes the connection.
type GRPC struct {
	Address, Service string
	TLS              *tls.Config

	conn *grpc.ClientConn // nil if there is none
}

// Probe implements Prober. The message is the serving status.
func (g *GRPC) Probe(ctx context.Context) Outcome {
	kept := g.conn != nil
	answer, err := g.ask(ctx)
	if kept && status.Code(err) == codes.Unavailable { // perhaps the kept connection was closed
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

// ask calls the health service, and connects first if necessary. It does not reuse a connection after an error: grpc
// would wait before it connects again, and a probe would fail without a call.
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
		grpc.WithReadBufferSize(0), grpc.WithWriteBufferSize(0)) // requests and responses have a few bytes
}

// Close implements io.Closer. It closes the kept connection.
func (g *GRPC) Close() error {
	conn := g.conn
	if conn == nil {
		return nil
	}
	g.conn = nil
	return conn.Close()
}

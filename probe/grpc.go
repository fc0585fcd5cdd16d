package probe

import (
	"context"
	"crypto/tls"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// GRPC asks the health service (grpc.health.v1) at Address, "host:port", for Service; the empty service is the
// server as a whole. Without TLS it speaks plain text, as Kubernetes' probes do.
type GRPC struct {
	Address, Service string
	TLS              *tls.Config
}

// Probe implements Prober. The message is the serving status.
func (g GRPC) Probe(ctx context.Context) Outcome {
	creds := insecure.NewCredentials()
	if g.TLS != nil {
		creds = credentials.NewTLS(g.TLS)
	}
	conn, err := grpc.NewClient("passthrough:///"+g.Address,
		grpc.WithTransportCredentials(creds), grpc.WithNoProxy(), grpc.WithDisableServiceConfig(),
		grpc.WithUserAgent("refit-probe"), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxBody)))
	if err != nil {
		return unknown(err)
	}
	defer func() { _ = conn.Close() }()
	answer, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: g.Service})
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

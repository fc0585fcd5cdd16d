package tracing_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"

	"github.com/refit-project/refit/internal/tracing"
)

// sink is a collector that keeps the names of spans, with the service in front.
type sink struct {
	collector.UnimplementedTraceServiceServer
	names chan string
}

func (s *sink) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	for _, of := range request.GetResourceSpans() {
		for _, scope := range of.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				s.names <- of.GetResource().GetAttributes()[0].GetValue().GetStringValue() + " " + span.GetName()
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

func TestSpansReachTheCollectorWhenTheProgramEnds(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, sink := grpc.NewServer(), &sink{names: make(chan string, 10)}
	collector.RegisterTraceServiceServer(server, sink)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)

	provider, err := tracing.New(t.Context(), tracing.Options{Endpoint: listener.Addr().String(), SamplingRatePerMillion: 1_000_000}, "refit-test", "v1")
	if err != nil {
		t.Fatal(err)
	}
	_, span := provider.Tracer("test").Start(t.Context(), "admission")
	span.End()
	ended, end := context.WithCancel(t.Context())
	end()
	if err := provider.Run(ended); err != nil {
		t.Fatal(err)
	}
	close(sink.names)
	if got := <-sink.names; got != "refit-test admission" {
		t.Errorf("the collector got %q", got)
	}
}

func TestWithoutAnEndpointNothingIsRecorded(t *testing.T) {
	t.Parallel()
	provider, err := tracing.New(t.Context(), tracing.Options{SamplingRatePerMillion: 1_000_000}, "refit-test", "v1")
	if err != nil {
		t.Fatal(err)
	}
	_, span := provider.Tracer("test").Start(t.Context(), "admission")
	if span.IsRecording() || provider.Enabled() {
		t.Error("recorded")
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{
		"--tracing-endpoint=collector:4317": "", "--tracing-sampling-rate=0": "", "--tracing-endpoint=[::1]:4317": "",
		"--tracing-endpoint=collector": "--tracing-endpoint", "--tracing-endpoint=http://collector:4317": "--tracing-endpoint",
		"--tracing-sampling-rate=-1": "--tracing-sampling-rate", "--tracing-sampling-rate=1000001": "--tracing-sampling-rate",
	} {
		var options tracing.Options
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		options.AddFlags(flags)
		options.AddSamplingFlag(flags)
		if err := flags.Parse([]string{flag}); err != nil {
			t.Fatal(err)
		}
		if err := options.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// Package tracing sends OpenTelemetry traces to a collector, over OTLP/gRPC. What is traced is decided by packages with a
// trace.Tracer; none of them imports this one.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

const (
	million = 1_000_000
	// flushTimeout bounds the sending of the last spans when the program ends.
	flushTimeout = 5 * time.Second
)

// Options are the values of the flags. The names are the same as in kubelet's TracingConfiguration.
type Options struct {
	// Endpoint is host:port of the collector, without TLS; empty sends no traces.
	Endpoint string
	// SamplingRatePerMillion is how many of a million traces that begin here are recorded. Traces that began elsewhere are
	// recorded if they were recorded there.
	SamplingRatePerMillion int32
}

// AddFlags adds --tracing-endpoint.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Endpoint, "tracing-endpoint", "", "`host:port` of an OpenTelemetry collector that gets traces over OTLP/gRPC, without TLS; empty: no traces")
}

// AddSamplingFlag adds --tracing-sampling-rate, for a program in which traces begin.
func (o *Options) AddSamplingFlag(flags *pflag.FlagSet) {
	flags.Int32Var(&o.SamplingRatePerMillion, "tracing-sampling-rate", million, "requests of a million that are traced; a request that names a sampled trace is traced in any case")
}

// Validate returns all errors at once.
func (o *Options) Validate() error {
	var errs []error
	if o.Endpoint != "" {
		if host, port, err := net.SplitHostPort(o.Endpoint); err != nil || host == "" || port == "" {
			errs = append(errs, fmt.Errorf("--tracing-endpoint %q: want host:port", o.Endpoint))
		}
	}
	if o.SamplingRatePerMillion < 0 || o.SamplingRatePerMillion > million {
		errs = append(errs, fmt.Errorf("--tracing-sampling-rate %d: must be from 0 to %d", o.SamplingRatePerMillion, million))
	}
	return errors.Join(errs...)
}

// Provider creates tracers. Without an endpoint they record nothing.
type Provider struct {
	trace.TracerProvider
	sdk *sdktrace.TracerProvider
}

// New returns a Provider for a program. The collector need not respond yet; spans that it does not accept in time are lost.
// Run sends what is left when the program ends.
func New(ctx context.Context, options Options, service, version string) (*Provider, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	if options.Endpoint == "" {
		return &Provider{TracerProvider: noop.NewTracerProvider()}, nil
	}
	exporter, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpoint(options.Endpoint), otlptracegrpc.WithInsecure())
	if err != nil {
		return nil, fmt.Errorf("send traces to %s: %w", options.Endpoint, err)
	}
	sdk := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", service), attribute.String("service.version", version))),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(float64(options.SamplingRatePerMillion)/million))),
	)
	return &Provider{TracerProvider: sdk, sdk: sdk}, nil
}

// Enabled reports whether traces are sent.
func (p *Provider) Enabled() bool { return p.sdk != nil }

// Run waits for the end of ctx and then sends the remaining spans.
func (p *Provider) Run(ctx context.Context) error {
	<-ctx.Done()
	if p.sdk == nil {
		return nil
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	if err := p.sdk.Shutdown(last); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("send the last traces: %w", err)
	}
	return nil
}

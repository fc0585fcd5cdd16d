package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// span is one of a trace that somebody has sent. IDs are in hexadecimal.
type span struct {
	Service    string            `json:"service"`
	Name       string            `json:"name"`
	TraceID    string            `json:"trace_id"`
	ID         string            `json:"id"`
	Parent     string            `json:"parent,omitempty"`
	Start      time.Time         `json:"start"`
	End        time.Time         `json:"end"`
	Error      string            `json:"error,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"` // those that are strings
}

// traces is a collector of OpenTelemetry that writes down each span.
type traces struct {
	collector.UnimplementedTraceServiceServer
	journal *journal
}

// Export implements the trace service of OTLP.
func (t traces) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	for _, of := range request.GetResourceSpans() {
		service := texts(of.GetResource().GetAttributes())["service.name"]
		for _, scope := range of.GetScopeSpans() {
			for _, sent := range scope.GetSpans() {
				if err := t.journal.add(line{Event: eventSpan, Span: spanOf(service, sent)}); err != nil {
					return nil, err
				}
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

func spanOf(service string, sent *trace.Span) *span {
	s := &span{
		Service: service, Name: sent.GetName(), TraceID: hex.EncodeToString(sent.GetTraceId()), ID: hex.EncodeToString(sent.GetSpanId()),
		Parent: hex.EncodeToString(sent.GetParentSpanId()), Start: timeOf(sent.GetStartTimeUnixNano()), End: timeOf(sent.GetEndTimeUnixNano()),
		Attributes: texts(sent.GetAttributes()),
	}
	if status := sent.GetStatus(); status.GetCode() == trace.Status_STATUS_CODE_ERROR {
		s.Error = status.GetMessage()
	}
	return s
}

func timeOf(nanoseconds uint64) time.Time {
	return time.Unix(0, int64(nanoseconds)).UTC()
}

func texts(attributes []*common.KeyValue) map[string]string {
	all := map[string]string{}
	for _, attribute := range attributes {
		if text, ok := attribute.GetValue().GetValue().(*common.AnyValue_StringValue); ok {
			all[attribute.GetKey()] = text.StringValue
		}
	}
	return all
}

// listenOTLP serves until stop is called.
func listenOTLP(address string, j *journal, broken chan<- error) (stop func(), err error) {
	listener, err := net.Listen("tcp", address) //nolint:noctx // once, at start
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, traces{journal: j})
	var work sync.WaitGroup
	work.Go(func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			report(broken, err)
		}
	})
	return func() { server.Stop(); work.Wait() }, nil
}

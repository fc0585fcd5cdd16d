package main

import (
	"context"
	"encoding/json"
	"io"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
)

func text(key, value string) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}}
}

func TestSpansAreWrittenDown(t *testing.T) {
	t.Parallel()
	read, write := io.Pipe()
	j, err := newJournal(func(string) string { return "" }, write)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 11, 22, 12, 0, 0, 1, time.UTC)
	sent := &trace.Span{
		Name: "stop", TraceId: []byte{1, 2}, SpanId: []byte{3}, ParentSpanId: []byte{4},
		StartTimeUnixNano: uint64(begin.UnixNano()), EndTimeUnixNano: uint64(begin.Add(time.Second).UnixNano()),
		Attributes: []*common.KeyValue{text("k8s.pod.name", "web")},
		Status:     &trace.Status{Code: trace.Status_STATUS_CODE_ERROR, Message: "shim says no"},
	}
	go func() {
		_, err := traces{journal: j}.Export(context.WithoutCancel(t.Context()), &collector.ExportTraceServiceRequest{ResourceSpans: []*trace.ResourceSpans{{
			Resource:   &resource.Resource{Attributes: []*common.KeyValue{text("service.name", "refit-daemon")}},
			ScopeSpans: []*trace.ScopeSpans{{Spans: []*trace.Span{sent}}},
		}}})
		_ = write.CloseWithError(err)
	}()
	var l line
	if err := json.NewDecoder(read).Decode(&l); err != nil {
		t.Fatal(err)
	}
	got := l.Span
	if got == nil || l.Event != eventSpan || got.Service != "refit-daemon" || got.Name != "stop" || got.TraceID != "0102" || got.ID != "03" || got.Parent != "04" ||
		got.Error != "shim says no" || got.Attributes["k8s.pod.name"] != "web" || !got.Start.Equal(begin) || got.End.Sub(got.Start) != time.Second {
		t.Errorf("written %+v", got)
	}
	if _, err := io.Copy(io.Discard, read); err != nil {
		t.Error(err)
	}
}

package criproxy

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1" // also registers the messages
)

// Line is one call in the record. It is written when the call has ended.
type Line struct {
	Time        time.Time `json:"time"` // of the call's begin
	Method      string    `json:"method"`
	ContainerID string    `json:"container_id,omitempty"`
	Command     []string  `json:"command,omitempty"` // ExecSync
	Image       string    `json:"image,omitempty"`   // PullImage and other calls of the image service
	// Timeout is what the request says, in seconds: of a stop its grace period.
	Timeout    *int64  `json:"timeout,omitempty"`
	DurationMS float64 `json:"duration_ms"`
	Code       string  `json:"code"` // OK, or as gRPC names it
	Error      string  `json:"error,omitempty"`
	Caller     string  `json:"caller"` // a hint: pid and name of the peer, and its user agent
}

type record struct {
	mu   sync.Mutex
	file *os.File
}

func openRecord(name string) (*record, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open record: %w", err)
	}
	return &record{file: file}, nil
}

// add ends the process when the record cannot be written: an incomplete one would prove things.
func (r *record) add(l Line) {
	b, err := json.Marshal(l)
	if err != nil {
		panic(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.file.Write(append(b, '\n')); err != nil {
		panic(err)
	}
}

func (r *record) close() {
	if err := r.file.Close(); err != nil {
		panic(err)
	}
}

// ended completes the line of a call.
func (l Line) ended(err error) Line {
	s := status.Convert(err)
	l.DurationMS = float64(time.Since(l.Time).Microseconds()) / 1000
	l.Code, l.Error = s.Code().String(), s.Message()
	return l
}

// lineOf is what is known of a call at its begin.
func lineOf(ctx context.Context, full string, req frame, start time.Time) Line {
	l := Line{Time: start, Method: path.Base(full), Caller: caller(ctx)}
	m := requestOf(full, req)
	if r, ok := m.(interface{ GetContainerId() string }); ok {
		l.ContainerID = r.GetContainerId()
	}
	if r, ok := m.(interface{ GetImage() *runtimeapi.ImageSpec }); ok {
		l.Image = r.GetImage().GetImage()
	}
	if r, ok := m.(interface{ GetTimeout() int64 }); ok {
		timeout := r.GetTimeout()
		l.Timeout = &timeout
	}
	if r, ok := m.(interface{ GetCmd() []string }); ok {
		l.Command = r.GetCmd()
	}
	return l
}

// requestOf reads a frame as what the method takes; nil for methods of a newer CRI than ours.
func requestOf(full string, f frame) any {
	service, method := path.Split(strings.TrimPrefix(full, "/"))
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(
		protoreflect.FullName(strings.TrimSuffix(service, "/") + "." + method))
	if err != nil {
		return nil
	}
	descriptor, ok := found.(protoreflect.MethodDescriptor)
	if !ok {
		return nil
	}
	t, err := protoregistry.GlobalTypes.FindMessageByName(descriptor.Input().FullName())
	if err != nil {
		return nil
	}
	m := t.New().Interface()
	if err := proto.Unmarshal(f, m); err != nil {
		return nil
	}
	return m
}

func caller(ctx context.Context) string {
	var parts []string
	if p, ok := peer.FromContext(ctx); ok {
		parts = append(parts, p.Addr.String())
	}
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		parts = append(parts, md.Get("user-agent")...)
	}
	return strings.Join(parts, " ")
}

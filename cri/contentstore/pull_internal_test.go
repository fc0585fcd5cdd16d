package contentstore

import (
	"context"
	"io"
	"testing"
	"time"

	contentapi "github.com/containerd/containerd/api/services/content/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// content is a content store with one manifest and one layer of 100 bytes.
type content struct {
	contentapi.ContentClient
	offset    int64 // of the layer's ingest, none if negative
	committed bool
}

type stream[R any] struct {
	grpc.ClientStream
	rest []*R
}

func (s *stream[R]) Recv() (*R, error) {
	if len(s.rest) == 0 {
		return nil, io.EOF
	}
	first := s.rest[0]
	s.rest = s.rest[1:]
	return first, nil
}

func (c *content) List(context.Context, *contentapi.ListContentRequest, ...grpc.CallOption) (contentapi.Content_ListClient, error) {
	info := &contentapi.Info{Digest: "sha256:manifest", Labels: map[string]string{labelConfig: "sha256:config"}}
	return &stream[contentapi.ListContentResponse]{rest: []*contentapi.ListContentResponse{{Info: []*contentapi.Info{info}}}}, nil
}

func (c *content) Read(context.Context, *contentapi.ReadContentRequest, ...grpc.CallOption) (contentapi.Content_ReadClient, error) {
	text := []byte(`{"layers":[{"digest":"sha256:layer","size":100}]}`)
	return &stream[contentapi.ReadContentResponse]{rest: []*contentapi.ReadContentResponse{{Data: text}}}, nil
}

func (c *content) ListStatuses(context.Context, *contentapi.ListStatusesRequest, ...grpc.CallOption) (*contentapi.ListStatusesResponse, error) {
	if c.offset < 0 {
		return &contentapi.ListStatusesResponse{}, nil
	}
	ingest := &contentapi.Status{Ref: "layer-sha256:layer", Offset: c.offset}
	return &contentapi.ListStatusesResponse{Statuses: []*contentapi.Status{ingest}}, nil
}

func (c *content) Info(context.Context, *contentapi.InfoRequest, ...grpc.CallOption) (*contentapi.InfoResponse, error) {
	if !c.committed {
		return nil, status.Error(codes.NotFound, "not found")
	}
	return &contentapi.InfoResponse{}, nil
}

func TestProgressDoesNotFallWhileABlobIsCommitted(t *testing.T) {
	t.Parallel()
	store := &content{}
	read := MeterPull(store, nil, "registry.example.com", "app", "sha256:manifest", time.Time{})
	for _, step := range []struct {
		name      string
		offset    int64
		committed bool
		want      int64
	}{
		{"not begun", -1, false, 0},
		{"written", 90, false, 90},
		{"neither ingest nor content", -1, false, 90},
		{"committed", -1, true, 100},
	} {
		store.offset, store.committed = step.offset, step.committed
		progress, err := read(t.Context())
		if want := (Progress{Pulled: step.want, Total: 100}); err != nil || progress != want {
			t.Errorf("%s: %+v (%v), want %+v", step.name, progress, err, want)
		}
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(`{"config":{"digest":"sha256:a","size":5},"layers":[{"digest":"sha256:b","size":7},{"size":-1}]}`))
	f.Add([]byte(`{"layers":[{"size":9223372036854775807},{"size":9223372036854775807}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		blobs, err := parseManifest(data)
		var sum int64
		for _, b := range blobs {
			sum += b.Size
		}
		if err == nil && sum < 0 {
			t.Errorf("%d bytes in %q", sum, data)
		}
	})
}

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"
)

const megabyte = 1_000_000

// registry serves one image for each size, of one layer that cannot be compressed, on the loopback interface.
type registry struct {
	host   string
	server *http.Server
	random []byte
	sizes  []int
	images map[string]*image // by repository
}

func serve(ctx context.Context, megabytes []int) (*registry, error) {
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serve images: %w", err)
	}
	r := &registry{host: listener.Addr().String()}
	largest := 0
	for _, n := range megabytes {
		r.sizes = append(r.sizes, n*megabyte)
		largest = max(largest, n*megabyte)
	}
	r.random = make([]byte, largest)
	_, _ = rand.NewChaCha8([32]byte{}).Read(r.random) // it never fails
	r.server = &http.Server{ReadHeaderTimeout: time.Minute}
	r.images = map[string]*image{}
	r.server.Handler = http.HandlerFunc(func(out http.ResponseWriter, request *http.Request) { answer(out, request, r.images) })
	for i, size := range r.sizes {
		r.images[fmt.Sprintf("image-%d", i)] = newImage(r.random[:size])
	}
	go r.server.Serve(listener) //nolint:errcheck // it ends when it is closed
	return r, nil
}

func (r *registry) close() { _ = r.server.Close() }

// names are what the images are pulled by.
func (r *registry) names() []string {
	var names []string
	for i := range r.sizes {
		names = append(names, fmt.Sprintf("%s/image-%d:v1", r.host, i))
	}
	return names
}

// among returns the names of images on a node that belong to this registry, by whatever reference.
func (r *registry) among(present []string) []string {
	configs := map[string]bool{}
	for _, i := range r.images {
		configs[digest(i.config)] = true
	}
	return slices.DeleteFunc(present, func(name string) bool { return !strings.HasPrefix(name, r.host+"/") && !configs[name] })
}

// hasLayer says whether one of the digests is the digest of a layer.
func (r *registry) hasLayer(digests []string) bool {
	for _, i := range r.images {
		if slices.Contains(digests, i.digest) {
			return true
		}
	}
	return false
}

// image is a tar archive of one file, and what refers to it.
type image struct {
	header, content, end []byte
	config, manifest     []byte
	digest               string // of the layer
}

func digest(parts ...[]byte) string {
	sum := sha256.New()
	for _, part := range parts {
		sum.Write(part)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

func newImage(content []byte) *image {
	const block = 512
	i := &image{content: content, header: tarHeader(len(content)), end: make([]byte, 2*block+(block-len(content)%block)%block)}
	i.digest = digest(i.header, i.content, i.end)
	i.config = encode(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "config": map[string]any{},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{i.digest}},
	})
	describe := func(mediaType, digest string, size int) map[string]any {
		return map[string]any{"mediaType": mediaType, "digest": digest, "size": size}
	}
	i.manifest = encode(map[string]any{
		"schemaVersion": 2, "mediaType": manifestType,
		"config": describe("application/vnd.oci.image.config.v1+json", digest(i.config), len(i.config)),
		"layers": []any{describe("application/vnd.oci.image.layer.v1.tar", i.digest, len(i.header)+len(i.content)+len(i.end))},
	})
	return i
}

const manifestType = "application/vnd.oci.image.manifest.v1+json"

func encode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // maps of texts and numbers can always be encoded
	}
	return text
}

// answer follows the OCI distribution specification as far as pulls go.
func answer(out http.ResponseWriter, request *http.Request, images map[string]*image) {
	path := strings.TrimPrefix(request.URL.Path, "/v2/")
	name, reference, isManifest := strings.Cut(path, "/manifests/")
	if !isManifest {
		name, reference, _ = strings.Cut(path, "/blobs/")
	}
	i := images[name]
	var parts [][]byte
	switch {
	case path == "":
		return
	case i == nil:
	case isManifest:
		out.Header().Set("Content-Type", manifestType)
		reference, parts = digest(i.manifest), [][]byte{i.manifest}
	case reference == i.digest:
		parts = [][]byte{i.header, i.content, i.end}
	case reference == digest(i.config):
		parts = [][]byte{i.config}
	}
	if parts == nil {
		http.NotFound(out, request)
		return
	}
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	out.Header().Set("Docker-Content-Digest", reference)
	out.Header().Set("Content-Length", fmt.Sprint(size))
	for _, part := range parts {
		if request.Method == http.MethodHead {
			return
		}
		if _, err := out.Write(part); err != nil {
			return // the client is gone
		}
	}
}

// tarHeader is the header of an archive's only file.
func tarHeader(size int) []byte {
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	if err := writer.WriteHeader(&tar.Header{Name: "content", Mode: 0o644, Size: int64(size)}); err != nil {
		panic(err) // a buffer takes it
	}
	return buffer.Bytes()
}

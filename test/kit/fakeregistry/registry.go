// Package fakeregistry is an image registry whose faults are set, for tests and benchmarks of pulls.
package fakeregistry

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// Fault is what goes wrong with an image.
type Fault struct {
	// Status is answered to requests for the manifest; 0: the truth.
	Status int
	// RetryAfter is the header of that name.
	RetryAfter string
	// StallAfter so many bytes of a layer; 0: never.
	StallAfter int
	// BytesPerSecond of a layer; 0: as fast as can be.
	BytesPerSecond int
	// WrongBytes serves another layer than the manifest names.
	WrongBytes bool
	// Login is "user:password", without which nothing of the image is served. It is no fault of one request.
	Login string
	// Times is how many requests are affected; 0: all.
	Times int
}

// Registry serves images over HTTP. Create it with Start or New.
type Registry struct {
	// Host is "127.0.0.1:<port>".
	Host string

	mu     sync.Mutex
	images map[string]*image // by repository
	blobs  map[string]blob
}

type image struct {
	manifest []byte
	fault    Fault
}

// blob is in parts, of which one may be shared by several blobs.
type blob [][]byte

func (b blob) size() int {
	n := 0
	for _, part := range b {
		n += len(part)
	}
	return n
}

// Digests are the digests of an image.
type Digests struct{ Manifest, Config, Layer string }

// New returns a registry without images, to be served by the caller.
func New() *Registry { return &Registry{images: map[string]*image{}, blobs: map[string]blob{}} }

// Start serves until the test ends.
func Start(t *testing.T) *Registry {
	t.Helper()
	r := New()
	server := httptest.NewServer(r)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	r.Host = strings.TrimPrefix(server.URL, "http://")
	return r
}

func digest(parts ...[]byte) string {
	sum := sha256.New()
	for _, part := range parts {
		sum.Write(part)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

// Add makes an image of one layer of about so many bytes, which cannot be compressed, and returns the digest of its
// manifest. Any tag names it.
func (r *Registry) Add(t *testing.T, repository string, size int, fault Fault) string {
	t.Helper()
	content := make([]byte, size)
	random := rand.NewChaCha8([32]byte([]byte(fmt.Sprintf("%-32.32s", repository+r.Host))))
	_, _ = random.Read(content) // it never fails
	return r.Put(repository, content, fault).Manifest
}

// Put makes an image of one layer with one file, whose content must not be changed. Any tag names the image.
func (r *Registry) Put(repository string, content []byte, fault Fault) Digests {
	const block = 512
	layer := blob{tarHeader(len(content)), content, make([]byte, 2*block+(block-len(content)%block)%block)}
	of := Digests{Layer: digest(layer...)}
	config := encode(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "config": map[string]any{},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{of.Layer}},
	})
	of.Config = digest(config)
	describe := func(mediaType, digest string, size int) map[string]any {
		return map[string]any{"mediaType": mediaType, "digest": digest, "size": size}
	}
	manifest := encode(map[string]any{
		"schemaVersion": 2, "mediaType": manifestType,
		"config": describe("application/vnd.oci.image.config.v1+json", of.Config, len(config)),
		"layers": []any{describe("application/vnd.oci.image.layer.v1.tar", of.Layer, layer.size())},
	})
	of.Manifest = digest(manifest)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blobs[of.Config], r.blobs[of.Layer] = blob{config}, layer
	r.images[repository] = &image{manifest: manifest, fault: fault}
	return of
}

const manifestType = "application/vnd.oci.image.manifest.v1+json"

// tarHeader is the header of an archive's only file.
func tarHeader(size int) []byte {
	var buffer bytes.Buffer
	if err := tar.NewWriter(&buffer).WriteHeader(&tar.Header{Name: "content", Mode: 0o644, Size: int64(size)}); err != nil {
		panic(err) // a buffer takes it
	}
	return buffer.Bytes()
}

func encode(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // maps of texts and numbers can always be encoded
	}
	return data
}

// ServeHTTP follows the OCI distribution specification as far as pulls go.
func (r *Registry) ServeHTTP(out http.ResponseWriter, request *http.Request) {
	path := strings.TrimPrefix(request.URL.Path, "/v2/")
	if path == "" {
		return
	}
	if !r.admits(request, path) {
		out.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		http.Error(out, `{"errors":[]}`, http.StatusUnauthorized)
		return
	}
	if repository, _, ok := strings.Cut(path, "/manifests/"); ok {
		r.manifest(out, request, repository)
		return
	}
	repository, name, _ := strings.Cut(path, "/blobs/")
	r.mu.Lock()
	data, ok := r.blobs[name]
	fault := r.take(repository, false)
	r.mu.Unlock()
	if !ok {
		http.NotFound(out, request)
		return
	}
	out.Header().Set("Content-Length", fmt.Sprint(data.size()))
	out.Header().Set("Docker-Content-Digest", name)
	switch {
	case request.Method == http.MethodHead:
	case fault == Fault{}:
		for _, part := range data {
			if _, err := out.Write(part); err != nil {
				return // the client is gone
			}
		}
	default:
		r.send(out, request, bytes.Join(data, nil), fault)
	}
}

// admits reports whether a request bears the login of the image that it is about.
func (r *Registry) admits(request *http.Request, path string) bool {
	repository, _, _ := strings.Cut(strings.Replace(path, "/blobs/", "/manifests/", 1), "/manifests/")
	r.mu.Lock()
	defer r.mu.Unlock()
	i := r.images[repository]
	if i == nil || i.fault.Login == "" {
		return true
	}
	user, password, _ := request.BasicAuth()
	return user+":"+password == i.fault.Login
}

// take is the fault of an image for one request. mu is held.
func (r *Registry) take(repository string, manifest bool) Fault {
	i := r.images[repository]
	if i == nil || manifest != (i.fault.Status != 0) {
		return Fault{}
	}
	fault := i.fault
	if fault.Times == 1 {
		i.fault = Fault{}
	} else if fault.Times > 1 {
		i.fault.Times--
	}
	return fault
}

func (r *Registry) manifest(out http.ResponseWriter, request *http.Request, repository string) {
	r.mu.Lock()
	i, fault := r.images[repository], r.take(repository, true)
	r.mu.Unlock()
	if i == nil {
		http.NotFound(out, request)
		return
	}
	if fault.Status != 0 {
		if fault.RetryAfter != "" {
			out.Header().Set("Retry-After", fault.RetryAfter)
		}
		http.Error(out, `{"errors":[]}`, fault.Status)
		return
	}
	out.Header().Set("Content-Type", manifestType)
	out.Header().Set("Docker-Content-Digest", digest(i.manifest))
	out.Header().Set("Content-Length", fmt.Sprint(len(i.manifest)))
	if request.Method != http.MethodHead {
		_, _ = out.Write(i.manifest) // the client is gone otherwise
	}
}

// send sends data with a fault.
func (r *Registry) send(out http.ResponseWriter, request *http.Request, data []byte, fault Fault) {
	if fault.WrongBytes && len(data) > 1024 {
		data[1000]++
	}
	chunk := 64 << 10
	if fault.BytesPerSecond > 0 {
		chunk = min(chunk, max(fault.BytesPerSecond/20, 1))
	}
	for sent := 0; sent < len(data); {
		if fault.StallAfter > 0 && sent >= fault.StallAfter && len(data) > 4096 {
			<-request.Context().Done()
			return
		}
		n := min(chunk, len(data)-sent)
		if _, err := out.Write(data[sent : sent+n]); err != nil {
			return
		}
		sent += n
		if flusher, ok := out.(http.Flusher); ok {
			flusher.Flush()
		}
		if fault.BytesPerSecond > 0 {
			select {
			case <-time.After(time.Second * time.Duration(n) / time.Duration(fault.BytesPerSecond)):
			case <-request.Context().Done():
				return
			}
		}
	}
}

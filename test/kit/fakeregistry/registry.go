// Package fakeregistry is an image registry that misbehaves as it is told to, for tests of pulls.
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

// Registry serves images over HTTP on the loopback interface. Make it with Start.
type Registry struct {
	// Host is "127.0.0.1:<port>".
	Host string

	mu     sync.Mutex
	images map[string]*image // by repository
	blobs  map[string][]byte
}

type image struct {
	manifest []byte
	fault    Fault
}

// Start serves until the test ends.
func Start(t *testing.T) *Registry {
	t.Helper()
	r := &Registry{images: map[string]*image{}, blobs: map[string][]byte{}}
	server := httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	r.Host = strings.TrimPrefix(server.URL, "http://")
	return r
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Add makes an image of one layer of about so many bytes, which cannot be compressed, and returns the digest of its
// manifest. Any tag names it.
func (r *Registry) Add(t *testing.T, repository string, size int, fault Fault) string {
	t.Helper()
	content := make([]byte, size)
	random := rand.NewChaCha8([32]byte([]byte(fmt.Sprintf("%-32.32s", repository+r.Host))))
	_, _ = random.Read(content) // it never fails
	var layer bytes.Buffer
	archive := tar.NewWriter(&layer)
	if err := archive.WriteHeader(&tar.Header{Name: "content", Mode: 0o644, Size: int64(size)}); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	config := encode(t, map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "config": map[string]any{},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digest(layer.Bytes())}},
	})
	manifest := encode(t, map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": descriptor("application/vnd.oci.image.config.v1+json", config),
		"layers": []any{descriptor("application/vnd.oci.image.layer.v1.tar", layer.Bytes())},
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blobs[digest(config)], r.blobs[digest(layer.Bytes())] = config, layer.Bytes()
	r.images[repository] = &image{manifest: manifest, fault: fault}
	return digest(manifest)
}

func descriptor(mediaType string, data []byte) map[string]any {
	return map[string]any{"mediaType": mediaType, "digest": digest(data), "size": len(data)}
}

func encode(t *testing.T, value any) []byte {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// serve follows the OCI distribution specification as far as pulls go.
func (r *Registry) serve(out http.ResponseWriter, request *http.Request) {
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
	repository, blob, _ := strings.Cut(path, "/blobs/")
	r.mu.Lock()
	data, ok := r.blobs[blob]
	fault := r.take(repository, false)
	r.mu.Unlock()
	if !ok {
		http.NotFound(out, request)
		return
	}
	if fault.WrongBytes && len(data) > 1024 {
		data = bytes.Clone(data)
		data[1000]++
	}
	out.Header().Set("Content-Length", fmt.Sprint(len(data)))
	out.Header().Set("Docker-Content-Digest", blob)
	if request.Method == http.MethodHead {
		return
	}
	r.send(out, request, data, fault)
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
	out.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
	out.Header().Set("Docker-Content-Digest", digest(i.manifest))
	out.Header().Set("Content-Length", fmt.Sprint(len(i.manifest)))
	if request.Method != http.MethodHead {
		_, _ = out.Write(i.manifest) // the client is gone otherwise
	}
}

func (r *Registry) send(out http.ResponseWriter, request *http.Request, data []byte, fault Fault) {
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

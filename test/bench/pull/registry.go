package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/refit-project/refit/test/kit/fakeregistry"
)

const megabyte = 1_000_000

// registry serves one image for each size, of one layer that cannot be compressed, on the loopback interface.
type registry struct {
	host   string
	server *http.Server
	images []fakeregistry.Digests
}

func serve(ctx context.Context, megabytes []int) (*registry, error) {
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serve images: %w", err)
	}
	random := make([]byte, slices.Max(megabytes)*megabyte)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random) // it never fails
	images := fakeregistry.New()
	r := &registry{host: listener.Addr().String(), server: &http.Server{ReadHeaderTimeout: time.Minute, Handler: images}}
	for i, n := range megabytes {
		r.images = append(r.images, images.Put(fmt.Sprintf("image-%d", i), random[:n*megabyte], fakeregistry.Fault{}))
	}
	go r.server.Serve(listener) //nolint:errcheck // it ends when it is closed
	return r, nil
}

func (r *registry) close() { _ = r.server.Close() }

// names are what the images are pulled by.
func (r *registry) names() []string {
	var names []string
	for i := range r.images {
		names = append(names, fmt.Sprintf("%s/image-%d:v1", r.host, i))
	}
	return names
}

// among returns the names of images on a node that belong to this registry, by whatever reference.
func (r *registry) among(present []string) []string {
	return slices.DeleteFunc(present, func(name string) bool {
		return !strings.HasPrefix(name, r.host+"/") && !slices.ContainsFunc(r.images, func(i fakeregistry.Digests) bool { return i.Config == name })
	})
}

// hasLayer reports whether one of the digests is the digest of a layer.
func (r *registry) hasLayer(digests []string) bool {
	return slices.ContainsFunc(r.images, func(i fakeregistry.Digests) bool { return slices.Contains(digests, i.Layer) })
}

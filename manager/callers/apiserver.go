package callers

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// maxAge is how old the addresses of the API servers may be if the caller has one of them, minAge if it has none.
	maxAge, minAge = 10 * time.Minute, 10 * time.Second
	// readWithin limits how long a call waits for these addresses.
	readWithin = time.Second
)

// kubernetesSlice is the EndpointSlice of the Service kubernetes, which the API servers write themselves.
var kubernetesSlice = client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}

// apiServers has the addresses of the API servers. They are read when they are needed: there is no watch, for which the
// manager would need more permissions.
type apiServers struct {
	live client.Reader // nil until Watch is called
	log  *slog.Logger

	reading sync.Mutex // held while the addresses are read
	mu      sync.Mutex
	read    time.Time
	known   map[netip.Addr]bool
}

// has reports whether an API server has the address, as far as that is known.
func (s *apiServers) has(ctx context.Context, address netip.Addr) bool {
	if known, _ := s.look(address); !known {
		return false
	}
	return s.hasNow(ctx, address, maxAge)
}

// hasNow reports whether an API server has the address. It reads the addresses if they were not read within age.
func (s *apiServers) hasNow(ctx context.Context, address netip.Addr, age time.Duration) bool {
	s.reading.Lock()
	defer s.reading.Unlock()
	if _, since := s.look(address); since >= age && s.live != nil {
		s.refresh(context.WithoutCancel(ctx)) // not given up with a caller who disconnects
	}
	known, _ := s.look(address)
	return known
}

// look returns whether the address is known, and how long ago all of them were read.
func (s *apiServers) look(address netip.Addr) (known bool, since time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[address], time.Since(s.read)
}

// refresh reads the addresses. If that fails, the known ones stay.
func (s *apiServers) refresh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	var slice discoveryv1.EndpointSlice
	err := s.live.Get(ctx, kubernetesSlice, &slice)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = time.Now()
	if err != nil {
		s.log.Warn("the addresses of the API servers cannot be read; their calls are judged as other calls", "error", err)
		return
	}
	s.known = map[netip.Addr]bool{}
	for _, endpoint := range slice.Endpoints {
		for _, text := range endpoint.Addresses {
			if address, err := netip.ParseAddr(text); err == nil {
				s.known[address.Unmap()] = true
			}
		}
	}
}

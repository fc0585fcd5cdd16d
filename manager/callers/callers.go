// Package callers decides who may call the webhooks of refit-manager. The API server does not authenticate itself to
// webhooks by default, so a call is judged by its source address: the address of a pod is refused. It does not know what
// the webhooks do.
package callers

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// Kinds of callers, as they are counted.
const (
	callerAPIServer = "apiserver"  // an endpoint of the Service default/kubernetes
	callerLoopback  = "loopback"   // kubectl port-forward, or a proxy in the pod of refit-manager
	callerExempt    = "exempt_pod" // a pod in the host network, or in an allowed namespace
	callerOther     = "other"      // the address of no pod
	callerUnchecked = "unchecked"  // the pods or the address are not known
	callerPod       = "pod"        // refused
	callerProved    = "certificate"
	callerUnproved  = "no_certificate" // refused
)

// Config has what the check needs. Without RefusePods and Certificates every call is let in.
type Config struct {
	// RefusePods refuses calls of pods that are not in the host network.
	RefusePods bool
	// Certificates refuses calls without a client certificate that the server has verified. Addresses are not judged then.
	Certificates bool
	// AllowedNamespaces have pods that forward calls of the API server, such as konnectivity-agent.
	AllowedNamespaces []string
	Metrics           prometheus.Registerer
	Logger            *slog.Logger
}

// Callers knows the addresses of pods and of API servers.
type Callers struct {
	config  Config
	pods    *pods
	servers apiServers
	synced  func() bool
	total   *prometheus.CounterVec
}

// New returns Callers that know no address until Watch is called.
func New(cfg Config) (*Callers, error) {
	total := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "refit_manager_webhook_calls_total",
		Help: "Calls of the webhooks, by caller: apiserver, loopback, exempt_pod (in the host network or an allowed namespace), other (the address of no pod), unchecked (the pods are not known yet), certificate (a valid one of a client), and the refused ones: pod, no_certificate.",
	}, []string{"caller"})
	if err := cfg.Metrics.Register(total); err != nil {
		return nil, fmt.Errorf("register metric: %w", err)
	}
	for _, caller := range []string{callerAPIServer, callerLoopback, callerExempt, callerOther, callerUnchecked, callerPod, callerProved, callerUnproved} {
		total.WithLabelValues(caller)
	}
	return &Callers{config: cfg, pods: newPods(cfg.AllowedNamespaces), synced: func() bool { return false }, total: total}, nil
}

// Watch follows the addresses of the cached pods. It is called once, before the manager starts. live reads from the API
// server.
func (c *Callers) Watch(ctx context.Context, cached cache.Informers, live client.Reader) error {
	if !c.config.RefusePods || c.config.Certificates {
		return nil
	}
	informer, err := cached.GetInformer(ctx, &corev1.Pod{})
	if err != nil {
		return fmt.Errorf("watch the addresses of pods: %w", err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: c.pods.set, UpdateFunc: c.pods.update, DeleteFunc: c.pods.remove,
	})
	if err != nil {
		return fmt.Errorf("watch the addresses of pods: %w", err)
	}
	c.synced, c.servers.live, c.servers.log = registration.HasSynced, live, c.config.Logger
	return nil
}

// Server returns the server with the check in front of each webhook that is registered from now on.
func (c *Callers) Server(of webhook.Server) webhook.Server { return checkedServer{of, c} }

type checkedServer struct {
	webhook.Server
	callers *Callers
}

// Register implements webhook.Server.
func (s checkedServer) Register(path string, hook http.Handler) {
	s.Server.Register(path, s.callers.Check(hook))
}

// Check answers refused calls with 403, before anything of the body is read.
func (c *Callers) Check(next http.Handler) http.Handler {
	if !c.config.RefusePods && !c.config.Certificates {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		address := source(r)
		caller := c.judge(r, address)
		c.total.WithLabelValues(caller).Inc()
		switch caller {
		case callerPod:
			c.logPod(address, r.URL.Path)
			refuse(w, fmt.Sprintf("%s is the address of a pod", address))
		case callerUnproved:
			refuse(w, "this call has no client certificate of the configured authority")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// refuse does not name anything that the caller does not know.
func refuse(w http.ResponseWriter, why string) {
	w.Header().Set("Connection", "close") // the server would otherwise read a part of the body
	http.Error(w, "only the API server may call this webhook, and "+why+"; see docs/security.md of Refit", http.StatusForbidden)
}

func (c *Callers) logPod(address netip.Addr, path string) {
	if pod, first := c.pods.refused(address); first {
		c.config.Logger.Warn("refused a call of a webhook by a pod; further calls of this pod are only counted",
			"pod", pod.String(), "address", address, "path", path)
	}
}

// source returns the address of the caller; the zero Addr if it is not readable.
func source(r *http.Request) netip.Addr {
	source, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return source.Addr().Unmap().WithZone("")
}

// judge returns the kind of the caller.
func (c *Callers) judge(r *http.Request, address netip.Addr) string {
	switch {
	case c.config.Certificates && r.TLS != nil && len(r.TLS.VerifiedChains) > 0:
		return callerProved
	case c.config.Certificates:
		return callerUnproved
	case !address.IsValid():
		return callerUnchecked
	case address.IsLoopback():
		return callerLoopback
	}
	return c.judgeAddress(r.Context(), address)
}

// judgeAddress waits if the address has not called before, because a program can call before the API server knows the
// address of its pod.
func (c *Callers) judgeAddress(ctx context.Context, address netip.Addr) string {
	if c.servers.has(ctx, address) {
		return callerAPIServer
	}
	found := c.pods.find(address)
	if (found.pod && !found.exempt || found.wait > 0) && c.servers.hasNow(ctx, address, minAge) {
		return callerAPIServer
	}
	if found.wait > 0 {
		select {
		case <-found.claimed:
		case <-time.After(found.wait):
		case <-ctx.Done():
		}
		found = c.pods.find(address)
	}
	switch {
	case found.exempt:
		return callerExempt
	case found.pod:
		return callerPod
	case !c.synced():
		return callerUnchecked
	}
	return callerOther
}

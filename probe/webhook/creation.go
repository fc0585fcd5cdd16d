// Package webhook serves the webhook that annotates new pods that may be bound to a virtual node with their probes.
// They need the annotation at creation because a provider may read it when it creates the instance. The package
// performs I/O only; package podprobe decides which probes are in it.
package webhook

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/internal/cache"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/guard"
	guardcontrol "github.com/refit-project/refit/internal/guard/control"
	"github.com/refit-project/refit/probe/control/compiled"
	"github.com/refit-project/refit/probe/podprobe"
)

const path = "/mutate-v1-pod-podprobe"

// readTimeout limits reads from caches, which wait until they are synchronized: a pod must not wait for its annotation.
const readTimeout = time.Second

// Config holds what the package needs from the manager.
type Config struct {
	Nodes  cache.Nodes
	Guard  *guard.Guard // catches panics in the review of one pod
	Logger *slog.Logger
}

// Add adds the webhook to a manager that has not been started yet. The webhook configuration selects the pods. Every
// replica serves the webhook.
func Add(mgr ctrl.Manager, cfg Config) error {
	if err := mgr.Add(watch{mgr.GetCache()}); err != nil {
		return fmt.Errorf("watch PodProbeMarkers: %w", err)
	}
	h := &handler{cached: mgr.GetClient(), nodes: cfg.Nodes, markers: &compiled.Markers{Guard: cfg.Guard}, log: cfg.Logger}
	mgr.GetWebhookServer().Register(path, guardcontrol.CheckReviews(guardcontrol.AllowingWebhook(cfg.Guard, h)))
	return nil
}

// AddNothing replaces Add in a manager that does not change pods. The webhook allows everything, in case its
// configuration still exists.
func AddNothing(mgr ctrl.Manager) {
	allow := func(context.Context, admission.Request) admission.Response {
		return admission.Allowed("refit-manager annotates no pods at their creation")
	}
	mgr.GetWebhookServer().Register(path, guardcontrol.CheckReviews(&admission.Webhook{Handler: admission.HandlerFunc(allow)}))
}

// watch starts the caches before the first pod, also on a replica that is not the leader.
type watch struct{ cache ctrlcache.Cache }

// Start implements manager.Runnable.
func (w watch) Start(ctx context.Context) error {
	if _, err := w.cache.GetInformer(ctx, &v1alpha1.PodProbeMarker{}); err != nil && ctx.Err() == nil {
		return fmt.Errorf("watch PodProbeMarkers: %w", err)
	}
	<-ctx.Done()
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (watch) NeedLeaderElection() bool { return false }

type handler struct {
	cached  client.Reader
	nodes   cache.Nodes
	markers *compiled.Markers
	log     *slog.Logger
}

// Handle implements admission.Handler.
func (h *handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.Operation != admissionv1.Create || request.SubResource != "" {
		return admission.Allowed("")
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var list v1alpha1.PodProbeMarkerList
	if err := h.cached.List(ctx, &list, client.InNamespace(request.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return h.failed(request, fmt.Errorf("list markers: %w", err))
	}
	if len(list.Items) == 0 {
		return admission.Allowed("")
	}
	var pod corev1.Pod
	if err := foreign.Object(request.Object.Raw, &pod); err != nil {
		return h.failed(request, fmt.Errorf("decode pod: %w", err))
	}
	pod.Namespace = request.Namespace
	if pod.Spec.NodeName != "" {
		node, err := h.nodes.Find(ctx, pod.Spec.NodeName)
		if err != nil {
			return h.failed(request, err)
		}
		if node == nil || !podprobe.VirtualNode(node.Labels) {
			return admission.Allowed("")
		}
	}
	return admission.Patched("", operations(&pod, podprobe.AtCreation(&pod, h.markers.Compile(list.Items, false)))...)
}

func (h *handler) failed(request admission.Request, err error) admission.Response {
	h.log.Warn("pod not annotated at its creation", "namespace", request.Namespace, "name", request.Name, "err", err)
	return admission.Errored(http.StatusInternalServerError, err)
}

// operations returns patches that set the annotations that the pod does not have.
func operations(pod *corev1.Pod, annotations map[string]string) []jsonpatch.Operation {
	var all []jsonpatch.Operation
	if len(annotations) > 0 && pod.Annotations == nil {
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/metadata/annotations", annotations)}
	}
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if pod.Annotations[key] != annotations[key] {
			all = append(all, jsonpatch.NewOperation("add", "/metadata/annotations/"+strings.ReplaceAll(key, "/", "~1"), annotations[key]))
		}
	}
	return all
}

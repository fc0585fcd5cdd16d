// Package webhook serves the webhooks of SidecarSets: one admits SidecarSets, and one injects into new pods. It
// performs I/O only; the subpackages of sidecarset decide what is injected.
package webhook

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	ctrl "sigs.k8s.io/controller-runtime"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/cache"
	"github.com/refit-project/refit/internal/guard"
	guardcontrol "github.com/refit-project/refit/internal/guard/control"
)

// Paths of the webhooks.
const (
	podPath        = "/mutate-v1-pod-sidecarset"
	sidecarSetPath = "/mutate-apps-kruise-io-sidecarset"
)

// Config holds what the package needs from the manager.
type Config struct {
	Namespace string // contains the ControllerRevisions of SidecarSets
	// OpenKruise is the namespace with the ControllerRevisions that OpenKruise has written; empty if they are not used.
	OpenKruise string
	Clock      func() time.Time
	Metrics    prometheus.Registerer
	Guard      *guard.Guard // catches panics in the review of one pod
	Logger     *slog.Logger
}

// namespaces returns the namespaces with ControllerRevisions of SidecarSets.
func (c Config) namespaces() []string {
	if c.OpenKruise == "" {
		return []string{c.Namespace}
	}
	return []string{c.Namespace, c.OpenKruise}
}

// ByObject limits the cache of ControllerRevisions to revisions of SidecarSets in the configured namespaces.
func ByObject(cfg Config) cache.ByObject {
	named, err := labels.NewRequirement(v1beta1.LabelSidecarSetName, selection.Exists, nil)
	if err != nil {
		panic(err) // cannot happen: the selector is constant
	}
	namespaces := map[string]crcache.Config{}
	for _, namespace := range cfg.namespaces() {
		namespaces[namespace] = crcache.Config{}
	}
	return cache.ByObject{&appsv1.ControllerRevision{}: {Namespaces: namespaces, Label: labels.NewSelector().Add(*named)}}
}

// Add adds the webhooks to a manager that has not been started yet. Every replica serves them.
func Add(mgr ctrl.Manager, cfg Config) error {
	counts := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "refit_manager_sidecarset_admissions_total",
		Help: "Pods that were created and for which the webhook was called, by what became of them: injected, unmatched, skipped, refused or failed.",
	}, []string{"result"})
	if err := cfg.Metrics.Register(counts); err != nil {
		return err
	}
	index := newIndex(mgr.GetCache(), cfg)
	if err := mgr.Add(index); err != nil {
		return fmt.Errorf("add index of SidecarSets: %w", err)
	}
	pods := &podHandler{index: index, namespaces: &namespaces{cached: mgr.GetCache(), live: mgr.GetAPIReader()}, now: cfg.Clock, counts: counts, guard: cfg.Guard, reviews: guard.NewSlots(parallelReviews), log: cfg.Logger}
	if err := mgr.Add(pods); err != nil {
		return fmt.Errorf("add reviews of pods: %w", err)
	}
	mgr.GetWebhookServer().Register(podPath, guardcontrol.BoundReviews(pods))
	sets := &sidecarSetHandler{decoder: admission.NewDecoder(mgr.GetScheme()), live: mgr.GetAPIReader(), access: access{mgr.GetClient()}, namespaces: cfg.namespaces(), log: cfg.Logger}
	mgr.GetWebhookServer().Register(sidecarSetPath, guardcontrol.CheckReviews(guardcontrol.Webhook(cfg.Guard, sets)))
	return nil
}

// AddNothing replaces Add in a cluster where a kruise-manager handles the SidecarSets. The webhooks allow everything,
// in case their configuration still exists.
func AddNothing(mgr ctrl.Manager, _ Config) error {
	for _, path := range []string{podPath, sidecarSetPath} {
		mgr.GetWebhookServer().Register(path, guardcontrol.CheckReviews(&admission.Webhook{Handler: admission.HandlerFunc(allow)}))
	}
	return nil
}

// partialNamespace returns the type of a namespace of which only the metadata is cached.
func partialNamespace() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(namespaceKind)
	return object
}

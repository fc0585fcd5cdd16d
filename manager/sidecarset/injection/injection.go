// Package injection serves the webhooks of SidecarSets: the one that admits SidecarSets, and the one that injects into pods
// that are created. It holds I/O only: what is injected is decided in package sidecarset.
package injection

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
	"github.com/refit-project/refit/manager/cache"
)

// Paths of the webhooks.
const (
	podPath        = "/mutate-v1-pod-sidecarset"
	sidecarSetPath = "/mutate-apps-kruise-io-sidecarset"
)

// Config is what the package needs from the manager.
type Config struct {
	Namespace string // with the ControllerRevisions of SidecarSets
	Clock     func() time.Time
	Metrics   prometheus.Registerer
	Logger    *slog.Logger
}

// ByObject limits the cache of ControllerRevisions to those of SidecarSets.
func ByObject(namespace string) cache.ByObject {
	named, err := labels.NewRequirement(v1beta1.LabelSidecarSetName, selection.Exists, nil)
	if err != nil {
		panic(err) // a constant
	}
	return cache.ByObject{&appsv1.ControllerRevision{}: {
		Namespaces: map[string]crcache.Config{namespace: {}}, Label: labels.NewSelector().Add(*named),
	}}
}

// Add adds the webhooks to a manager that has not been started. Every replica serves them.
func Add(mgr ctrl.Manager, cfg Config) error {
	counts := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "refit_manager_sidecarset_pods_total",
		Help: "Pods that were created and for which the webhook was called, by what became of them: injected, unmatched, skipped, refused or failed.",
	}, []string{"result"})
	if err := cfg.Metrics.Register(counts); err != nil {
		return err
	}
	index := newIndex(mgr.GetCache(), cfg)
	if err := mgr.Add(index); err != nil {
		return fmt.Errorf("add index of SidecarSets: %w", err)
	}
	pods := &podHandler{index: index, namespaces: &namespaces{cached: mgr.GetCache(), live: mgr.GetAPIReader()}, now: cfg.Clock, counts: counts, log: cfg.Logger}
	mgr.GetWebhookServer().Register(podPath, pods)
	recoverPanic := true
	mgr.GetWebhookServer().Register(sidecarSetPath, &admission.Webhook{
		Handler: &sidecarSetHandler{decoder: admission.NewDecoder(mgr.GetScheme()), sets: mgr.GetAPIReader(), log: cfg.Logger}, RecoverPanic: &recoverPanic,
	})
	return nil
}

// AddNothing is Add for a cluster where a kruise-manager has the SidecarSets. The webhooks allow everything, in case their
// configuration is still there.
func AddNothing(mgr ctrl.Manager, _ Config) error {
	for _, path := range []string{podPath, sidecarSetPath} {
		mgr.GetWebhookServer().Register(path, &admission.Webhook{Handler: admission.HandlerFunc(allow)})
	}
	return nil
}

// partialNamespace is a namespace of which the metadata alone is cached.
func partialNamespace() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(namespaceKind)
	return object
}

package daemon

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/kube"
)

// eventNotHandled is the reason of the Event about an object whose handling has failed.
const eventNotHandled = "NotHandled"

// places are the places where packages of the daemon handle one object.
var places = []string{"containers", "event", "images", "index", "probe", "probes", "requests", "runtime", "transform", "write"}

// newGuard returns the guard for code that handles one object.
func newGuard(registry prometheus.Registerer, events *kube.Events, logger *slog.Logger) *guard.Guard {
	faults := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "refit_daemon_object_panics_total",
		Help: "Faults of code that handled one object, by where and fault: panic, or deadline. The log names the object, with the stack.",
	}, []string{"where", "fault"})
	registry.MustRegister(faults)
	return guard.New(guard.Config{Program: component, Faults: faults, Places: places, Logger: logger, Report: func(object guard.Object, message string) {
		about := corev1.ObjectReference{Kind: object.Kind, Namespace: object.Namespace, Name: object.Name, UID: types.UID(object.UID)}
		events.Event(about, corev1.EventTypeWarning, eventNotHandled, message)
	}})
}

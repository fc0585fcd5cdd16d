package manager

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/events"

	"github.com/refit-project/refit/internal/guard"
	guardcontrol "github.com/refit-project/refit/internal/guard/control"
)

// places are the places where packages of the manager handle one object.
var places = []string{"admission", "event", "index", "injection", "inplaceupdatepolicy", "podprobes", "reconcile", "sidecarset", "transform", "write"}

// newGuard returns the guard for code that handles one object. The recorder is requested only when there is something to
// report, because the guarded informers are created before it.
func newGuard(registry prometheus.Registerer, logger *slog.Logger, recorder func() events.EventRecorder) (*guard.Guard, error) {
	faults := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "refit_manager_object_panics_total",
		Help: "Faults of code that handled one object, by where and fault: panic, or deadline. The log names the object, with the stack.",
	}, []string{"where", "fault"})
	if err := registry.Register(faults); err != nil {
		return nil, err
	}
	return guard.New(guard.Config{Program: Name, Faults: faults, Places: places, Logger: logger, Report: func(object guard.Object, message string) {
		guardcontrol.Report(recorder(), object, message)
	}}), nil
}

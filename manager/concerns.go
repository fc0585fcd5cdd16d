package manager

import (
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	crrcontrol "github.com/refit-project/refit/crr/control"
	imagecontrol "github.com/refit-project/refit/image/control"
	"github.com/refit-project/refit/internal/cache"
	"github.com/refit-project/refit/internal/disruptions"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/internal/tracing"
	probecontrol "github.com/refit-project/refit/probe/control"
	probewebhook "github.com/refit-project/refit/probe/webhook"
	rolloutcontrol "github.com/refit-project/refit/rollout/control"
	"github.com/refit-project/refit/rollout/control/configchange"
	"github.com/refit-project/refit/rollout/control/workload"
	sidecarsetcontrol "github.com/refit-project/refit/sidecarset/control"
	sidecarsetwebhook "github.com/refit-project/refit/sidecarset/webhook"
)

// addConcerns adds the packages with controllers, each with its configuration.
func addConcerns(mgr ctrl.Manager, cfg Config, guarded *guard.Guard, traces *tracing.Provider, user string, clock func() time.Time) error {
	ledger := disruptions.NewLedger(clock)
	nodes, recorder := cache.NewNodes(mgr.GetClient(), mgr.GetAPIReader()), boundedRecorder{mgr.GetEventRecorder(Name)}
	addRequests := crrcontrol.Add
	if !cfg.ContainerRecreateRequests {
		addRequests = crrcontrol.AddNothing
	}
	err := addRequests(mgr, crrcontrol.Config{
		Workers: cfg.Workers, User: user, ReadinessGates: cfg.ReadinessGates, Nodes: nodes, Daemons: cache.Daemons{Refit: cfg.Namespace, Kruise: cfg.OpenKruiseNamespace}, Clock: clock, Recorder: recorder,
		Metrics: metrics.Registry, Guard: guarded, Tracer: traces.Tracer(Name), Logger: cfg.Logger,
	})
	if err != nil {
		return fmt.Errorf("set up ContainerRecreateRequests: %w", err)
	}
	if cfg.RestartRollouts {
		err := rolloutcontrol.Add(mgr, rolloutcontrol.Config{
			Workers: cfg.Workers, User: user, Clock: clock, Disruptions: ledger, Recorder: recorder, Metrics: metrics.Registry, Guard: guarded, Logger: cfg.Logger,
		})
		if err != nil {
			return fmt.Errorf("set up RestartRollouts: %w", err)
		}
	}
	if cfg.InPlaceUpdates {
		err := workload.Add(mgr, workload.Config{
			Workers: cfg.Workers, User: user, Live: mgr.GetAPIReader(), PrePull: cfg.Images, Daemons: cache.Daemons{Refit: cfg.Namespace, Kruise: cfg.OpenKruiseNamespace},
			Clock: clock, Disruptions: ledger, Recorder: recorder, Metrics: metrics.Registry, Guard: guarded, Logger: cfg.Logger,
		})
		if err != nil {
			return err
		}
	}
	if cfg.RestartRollouts && cfg.ConfigChanges {
		err := configchange.Add(mgr, configchange.Config{Workers: cfg.Workers, Secrets: cfg.SecretChanges, Clock: clock, Recorder: recorder, Guard: guarded, Logger: cfg.Logger})
		if err != nil {
			return fmt.Errorf("set up restarts on changes of ConfigMaps: %w", err)
		}
	}
	if cfg.Images {
		err := imagecontrol.Add(mgr, imagecontrol.Config{
			Workers: cfg.Workers, Nodes: nodes, Live: mgr.GetAPIReader(), SecretNamespace: cfg.PullSecretNamespace, Clock: clock,
			Recorder: recorder, Guard: guarded, Logger: cfg.Logger,
		})
		if err != nil {
			return fmt.Errorf("set up image pulls: %w", err)
		}
	}
	if err := addSidecarSets(mgr, cfg, guarded, ledger, clock); err != nil {
		return fmt.Errorf("set up injection of SidecarSets: %w", err)
	}
	if !cfg.PodProbes {
		probewebhook.AddNothing(mgr)
		return nil
	}
	err = probecontrol.Add(mgr, probecontrol.Config{
		Workers: cfg.Workers, EmptyNodePodProbes: cfg.EmptyNodePodProbes,
		Nodes: nodes, Clock: clock, Recorder: recorder, Metrics: metrics.Registry, Guard: guarded, Logger: cfg.Logger,
	})
	if err != nil {
		return fmt.Errorf("set up PodProbeMarkers: %w", err)
	}
	if !cfg.ServerlessProbes {
		probewebhook.AddNothing(mgr)
		return nil
	}
	if err := probewebhook.Add(mgr, probewebhook.Config{Nodes: nodes, Guard: guarded, Logger: cfg.Logger}); err != nil {
		return fmt.Errorf("set up annotations of pods at their creation: %w", err)
	}
	return nil
}

func addSidecarSets(mgr ctrl.Manager, cfg Config, guarded *guard.Guard, ledger *disruptions.Ledger, clock func() time.Time) error {
	add := sidecarsetwebhook.Add
	if !cfg.SidecarSets {
		add = sidecarsetwebhook.AddNothing
	}
	err := add(mgr, sidecarsetwebhook.Config{Namespace: cfg.Namespace, OpenKruise: cfg.revisionNamespace(), Clock: clock, Metrics: metrics.Registry, Guard: guarded, Logger: cfg.Logger})
	if err != nil || !cfg.SidecarSetRollout {
		return err
	}
	return sidecarsetcontrol.Add(mgr, sidecarsetcontrol.Config{
		Namespace: cfg.Namespace, OpenKruise: cfg.revisionNamespace(), Excluded: cfg.ExcludedNamespaces, Workers: cfg.Workers, Live: mgr.GetAPIReader(), PrePull: cfg.Images, Disruptions: ledger, Clock: clock,
		Recorder: boundedRecorder{mgr.GetEventRecorder(Name)}, Metrics: metrics.Registry, Guard: guarded, Logger: cfg.Logger,
	})
}

package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/refit-project/refit/manager"
)

const long = `refit-manager serves the webhooks of ContainerRecreateRequests and manages their lifecycle: it ends those that
cannot be carried out, deletes those whose ttlSecondsAfterFinished has passed, and makes pods not ready while their
containers are restarted, if the request asks for that. The restarts are done by refit-daemon on each node and go on
while no manager runs.

It also writes the NodePodProbe of each node from the PodProbeMarkers, and sets conditions, labels and annotations of
pods from the results, with the field manager refit-podprobe.

It runs in a pod with the service account of deploy/manager and needs no options there. Outside a cluster it needs
--kubeconfig, and the API server has to reach its webhooks.

Ports: webhooks (HTTPS), health (/healthz, /readyz), metrics (/metrics; HTTPS with authorization by the API server
unless on loopback).`

const example = `  # as in deploy/manager
  refit-manager

  # with your own certificate, mounted from a Secret; set the caBundle fields of the
  # MutatingWebhookConfiguration refit-manager and of the CRD yourself
  refit-manager --cert-rotation=false --cert-dir=/etc/refit/certs

  # metrics for a Prometheus in the cluster
  refit-manager --metrics-addr=:8080`

func command(version string) *cobra.Command {
	var cfg manager.Config
	var logLevel slog.Level
	var logFormat string
	cmd := &cobra.Command{
		Use:           manager.Name,
		Short:         "Webhooks and controllers of ContainerRecreateRequests and PodProbeMarkers",
		Long:          long,
		Example:       example,
		Version:       version,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger, err := newLogger(logLevel, logFormat)
			if err != nil {
				return err
			}
			cfg.Logger = logger
			logger.Info("starting", "version", version)
			return manager.Run(cmd.Context(), cfg)
		},
	}
	namespace := os.Getenv("POD_NAMESPACE")
	if namespace == "" {
		namespace = "refit-system"
	}
	flags := cmd.Flags()
	flags.StringVar(&cfg.Kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig `file`; empty for the service account of the pod")
	flags.StringVar(&cfg.Namespace, "namespace", namespace, "namespace of the manager's lease, secret and service; default from env POD_NAMESPACE")
	flags.IntVar(&cfg.WebhookPort, "webhook-port", 9443, "TCP port of the webhooks")
	flags.StringVar(&cfg.WebhookService, "webhook-service", "refit-manager-webhook", "Service in front of the webhooks, for which the certificate is made")
	flags.BoolVar(&cfg.CertRotation, "cert-rotation", true, "make and renew the webhooks' certificate and publish its authority; with false, tls.crt and tls.key are read from --cert-dir")
	flags.StringVar(&cfg.CertDir, "cert-dir", "/run/refit-manager/certs", "`directory` of tls.crt and tls.key")
	flags.StringVar(&cfg.CertSecret, "cert-secret", "refit-manager-webhook-cert", "Secret that keeps the certificate; it has to exist and may be empty")
	flags.StringVar(&cfg.MetricsAddr, "metrics-addr", "127.0.0.1:8080", "`host:port` of /metrics, or 0 for none")
	flags.StringVar(&cfg.HealthAddr, "health-addr", ":8081", "`host:port` of /healthz and /readyz")
	flags.BoolVar(&cfg.LeaderElect, "leader-elect", true, "run the controllers on one elected replica; the webhooks are served by every replica")
	flags.IntVar(&cfg.Workers, "workers", 8, "objects of each kind reconciled at a time")
	flags.BoolVar(&cfg.PodProbes, "pod-probes", true, "reconcile PodProbeMarkers; set to false beside a kruise-manager that does")
	flags.TextVar(&logLevel, "log-level", slog.LevelInfo, "debug, info, warn or error")
	flags.StringVar(&logFormat, "log-format", "text", "text or json")
	return cmd
}

var errLogFormat = errors.New("log format is neither text nor json")

func newLogger(level slog.Level, format string) (*slog.Logger, error) {
	options := &slog.HandlerOptions{Level: level}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(os.Stderr, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(os.Stderr, options)), nil
	}
	return nil, fmt.Errorf("%w: %q", errLogFormat, format)
}

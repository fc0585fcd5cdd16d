package main

import (
	"cmp"
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/refit-project/refit/internal/logging"
	"github.com/refit-project/refit/manager"
)

const long = `refit-manager serves the webhooks of ContainerRecreateRequests and manages their lifecycle: it ends those that
cannot be carried out, deletes those whose ttlSecondsAfterFinished has passed, and makes pods not ready while their
containers are restarted, if the request asks for that. The restarts are done by refit-daemon on each node and go on
while no manager runs.

RestartRollouts restart the pods of a workload in place, a few pods at a time, by ContainerRecreateRequests that it creates.
RestartSchedules, and workloads that ask to be restarted when a ConfigMap or Secret has changed, have it create RestartRollouts.
InPlaceUpdatePolicies have the pods of a workload follow its template in place, a few pods at a time.
It serves the webhooks of SidecarSets: it admits them, and injects their containers into pods that are created. It updates
those containers in running pods, in place.

It writes the NodeImage of each node from the ImagePullJobs; refit-daemon pulls the images.

It also writes the NodePodProbe of each node from the PodProbeMarkers, and sets conditions, labels and annotations of
pods from the results, with the field manager refit-podprobe.

It runs in a pod with the service account of deploy/manager and needs no options there. Outside a cluster it needs
--kubeconfig, and the API server has to reach its webhooks.

Ports: webhooks (HTTPS), health (/healthz, /readyz), metrics (/metrics; HTTPS with authorization by the API server
unless on loopback).`

const example = `  # as in deploy/manager
  refit-manager

  # make or renew the certificates of the webhooks, as the Job and the CronJob refit-certificates do
  refit-manager certificates

  # metrics for a Prometheus in the cluster
  refit-manager --metrics-addr=:8080`

// newCommand returns the command line, which calls run with the configuration.
func newCommand(version string, run func(context.Context, manager.Config) error) *cobra.Command {
	cfg := manager.Config{Version: version}
	var log logging.Options
	cmd := &cobra.Command{
		Use:           manager.Name,
		Short:         "Webhooks and controllers of Refit",
		Long:          long,
		Example:       example,
		Version:       version,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger, err := log.New(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			cfg.Logger = logger
			logger.Info("starting", "version", version)
			return run(cmd.Context(), cfg)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&cfg.Kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig `file`; empty for the service account of the pod")
	flags.StringVar(&cfg.Namespace, "namespace", defaultNamespace(), "namespace of the manager's Lease and Secret, and of the pods of refit-daemon; default from env POD_NAMESPACE")
	flags.StringVar(&cfg.OpenKruiseNamespace, "openkruise-namespace", "kruise-system", "namespace of the pods of kruise-daemon; pods of other namespaces are not taken for daemons")
	flags.BoolVar(&cfg.OpenKruiseRevisions, "openkruise-revisions", false, "share the ControllerRevisions of SidecarSets with kruise-manager: copy the ones in --openkruise-namespace to refit-manager's namespace and back; needs permission for both")
	flags.IntVar(&cfg.WebhookPort, "webhook-port", 9443, "TCP port of the webhooks")
	flags.StringVar(&cfg.CertSecret, "cert-secret", certSecret, "Secret with tls.crt and tls.key of the webhooks; a change is taken into use without a restart")
	flags.BoolVar(&cfg.RefusePods, "webhook-refuse-pods", true, "refuse calls of the webhooks from addresses of pods, except pods in the host network; needs permission to get the EndpointSlice default/kubernetes")
	flags.StringSliceVar(&cfg.WebhookNamespaces, "webhook-allowed-namespaces", []string{"kube-system"}, "`namespaces` whose pods may call the webhooks, such as the namespace of konnectivity-agent")
	flags.StringSliceVar(&cfg.ExcludedNamespaces, "webhook-excluded-namespaces", nil, "`namespaces`, beside kube-system and --namespace, in which the configuration of the webhooks excludes new pods; pods without sidecars there are not evicted for injection")
	flags.StringVar(&cfg.WebhookClientCAFile, "webhook-client-ca-file", "", "`file` with the authority, in PEM, of the client certificate by which the API server authenticates itself to the webhooks; calls without such a certificate are refused, and --webhook-refuse-pods has no effect; empty: no certificate")
	flags.StringVar(&cfg.MetricsAddr, "metrics-addr", "127.0.0.1:8080", "`host:port` of /metrics, or 0 for none")
	flags.StringVar(&cfg.HealthAddr, "health-addr", ":8081", "`host:port` of /healthz and /readyz")
	flags.BoolVar(&cfg.LeaderElect, "leader-elect", true, "run the controllers on one elected replica; the webhooks are served by every replica")
	flags.IntVar(&cfg.Workers, "workers", 8, "objects of each kind reconciled at a time")
	flags.BoolVar(&cfg.SidecarSetRollout, "sidecarset-rollout", true, "update the containers of SidecarSets in running pods; set to false beside a kruise-manager that does")
	flags.BoolVar(&cfg.Images, "images", true, "reconcile ImagePullJobs, ImageListPullJobs and NodeImages; set to false beside a kruise-manager that does")
	flags.StringVar(&cfg.PullSecretNamespace, "pull-secret-namespace", "kruise-daemon-config", "namespace for the copies of pull secrets that daemons read")
	flags.BoolVar(&cfg.ContainerRecreateRequests, "container-recreate-requests", true, "serve the webhook of ContainerRecreateRequests and reconcile them; set to false beside a kruise-manager that does, and remove their webhook from the MutatingWebhookConfiguration")
	flags.BoolVar(&cfg.ReadinessGates, "readiness-gates", true, "serve the webhook that adds the readiness gate KruisePodReady to pods; its configuration selects namespaces with the label refit.dev/readiness-gate: enabled, or all; needs --container-recreate-requests")
	flags.BoolVar(&cfg.PodProbes, "pod-probes", true, "reconcile PodProbeMarkers; set to false beside a kruise-manager that does")
	flags.BoolVar(&cfg.ServerlessProbes, "serverless-probes", true, "serve the webhook that writes the annotation kruise.io/podprobe at the creation of pods that may be bound to virtual nodes, as its configuration says; needs --pod-probes")
	flags.BoolVar(&cfg.EmptyNodePodProbes, "empty-node-pod-probes", true, "make a NodePodProbe for every node, as kruise-manager does; set to false to make them only where there is something to probe, which saves one small object for each other node")
	flags.BoolVar(&cfg.RestartRollouts, "restart-rollouts", true, "serve the webhooks of RestartRollouts and RestartSchedules and reconcile them")
	flags.BoolVar(&cfg.InPlaceUpdates, "in-place-updates", true, "reconcile InPlaceUpdatePolicies, which update the pods of Deployments, StatefulSets and DaemonSets in place when their templates change")
	flags.BoolVar(&cfg.HoldWebhook, "hold-webhook", true, "with --in-place-updates: be ready only if the webhook that holds workloads can be called; set to false where a MutatingAdmissionPolicy holds them, or their owners do")
	flags.BoolVar(&cfg.ConfigChanges, "restart-on-config-change", true, "restart containers when ConfigMaps that they use have changed, in workloads with the annotation refit.dev/restart-on-config-change; needs --restart-rollouts")
	flags.BoolVar(&cfg.SecretChanges, "restart-on-secret-change", false, "the same for Secrets; needs --restart-on-config-change, and permission to get, list and watch Secrets")
	flags.BoolVar(&cfg.SidecarSets, "sidecar-sets", true, "serve the webhooks of SidecarSets; set to false beside a kruise-manager that does, and delete the MutatingWebhookConfiguration refit-manager-sidecarsets")
	cfg.Tracing.AddFlags(flags)
	cfg.Tracing.AddSamplingFlag(flags)
	log.AddFlags(cmd.PersistentFlags())
	cmd.AddCommand(certificatesCommand(&log), sidecarSetCommand(), doctorCommand())
	return cmd
}

// certSecret is the Secret by which the subcommand passes the certificate to the manager.
const certSecret = "refit-manager-webhook-cert"

func defaultNamespace() string {
	return cmp.Or(os.Getenv("POD_NAMESPACE"), "refit-system")
}

const certificatesLong = `certificates makes the certificate authority and the serving certificate of the webhooks, or renews them when less than
120 days are left, and writes the authority into the caBundle of the webhook configurations. It writes only what has to
change, so that it can be run at any time, and ends.

It runs with an account of its own, refit-certificates: the running manager can write neither webhook configurations
nor Secrets.`

func certificatesCommand(log *logging.Options) *cobra.Command {
	var cfg manager.CertificatesConfig
	cmd := &cobra.Command{
		Use:   "certificates",
		Short: "Make or renew the certificates of the webhooks, once",
		Long:  certificatesLong,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if cfg.Logger, err = log.New(cmd.ErrOrStderr()); err != nil {
				return err
			}
			return manager.IssueCertificates(cmd.Context(), cfg)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&cfg.Kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig `file`; empty for the service account of the pod")
	flags.StringVar(&cfg.Namespace, "namespace", defaultNamespace(), "namespace of the Secrets and the Service; default from env POD_NAMESPACE")
	flags.StringVar(&cfg.Service, "webhook-service", "refit-manager-webhook", "Service in front of the webhooks, for whose names the certificate is")
	flags.StringVar(&cfg.Secret, "cert-secret", certSecret, "Secret for the serving certificate; it has to exist and may be empty")
	flags.StringVar(&cfg.AuthoritySecret, "authority-secret", "refit-manager-webhook-ca", "Secret for the certificate authority and its key; it has to exist and may be empty")
	flags.StringSliceVar(&cfg.Webhooks, "webhook-configurations", []string{"refit-manager", "refit-manager-sidecarsets", "refit-manager-workloads"}, "MutatingWebhookConfigurations whose caBundle is written")
	return cmd
}

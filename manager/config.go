package manager

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/refit-project/refit/internal/tracing"
)

// Config is the configuration of a manager. The zero value is not valid.
type Config struct {
	Kubeconfig string // file; empty for the pod's service account
	// Namespace of the manager itself: its Lease, the Secret of the certificate, the Service of the webhooks, and the pods
	// of refit-daemon.
	Namespace           string
	OpenKruiseNamespace string // of OpenKruise: the pods of kruise-daemon, and ControllerRevisions
	// OpenKruiseRevisions reads ControllerRevisions of SidecarSets that OpenKruise has written. It needs permission for
	// them.
	OpenKruiseRevisions bool

	WebhookPort int    // TCP port of the webhooks
	CertSecret  string // name of the Secret with their certificate: tls.crt and tls.key
	RefusePods  bool   // refuse calls of the webhooks from addresses of pods
	// WebhookNamespaces have pods that may call the webhooks, with RefusePods.
	WebhookNamespaces []string
	// ExcludedNamespaces are the namespaces, beside kube-system and Namespace, in which the webhooks are not called for new pods.
	ExcludedNamespaces []string
	// WebhookClientCAFile is a file with certificates in PEM. Callers of the webhooks need a client certificate of one of
	// these authorities; empty: none.
	WebhookClientCAFile string

	MetricsAddr string // host:port; plain HTTP on loopback, HTTPS with authorization elsewhere; "0" for none
	HealthAddr  string // host:port of /healthz and /readyz

	LeaderElect         bool   // needed with more than one replica
	Workers             int    // objects of each kind that are reconciled concurrently
	Images              bool   // reconcile ImagePullJobs, ImageListPullJobs and NodeImages
	PullSecretNamespace string // for copies of pull secrets that the daemons read
	PodProbes           bool   // reconcile PodProbeMarkers
	ServerlessProbes    bool   // serve the webhook that annotates pods for virtual nodes at their creation; needs PodProbes
	EmptyNodePodProbes  bool   // create a NodePodProbe for every node, even without probes
	SidecarSets         bool   // serve the webhooks of SidecarSets
	SidecarSetRollout   bool   // update the containers of SidecarSets in running pods
	// ContainerRecreateRequests serves their webhook and reconciles them; false leaves them to a kruise-manager.
	ContainerRecreateRequests bool
	ReadinessGates            bool // serve the webhook that adds readiness gates to pods; needs ContainerRecreateRequests
	RestartRollouts           bool // serve the webhooks of RestartRollouts and RestartSchedules and reconcile them
	InPlaceUpdates            bool // reconcile InPlaceUpdatePolicies
	HoldWebhook               bool // with InPlaceUpdates: the API server calls the webhook that holds workloads
	ConfigChanges             bool // restart containers whose ConfigMaps have changed, if an annotation asks for it
	SecretChanges             bool // with ConfigChanges: Secrets too

	// Tracing has the endpoint for traces; without one there are none.
	Tracing tracing.Options
	Version string // of the program, for traces
	Logger  *slog.Logger
}

// Validate returns all errors of the configuration at once.
func (c Config) Validate() error {
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if len(validation.IsDNS1123Label(c.Namespace)) > 0 {
		problem("namespace %q is not a valid name of a Namespace", c.Namespace)
	}
	if len(validation.IsDNS1123Label(c.OpenKruiseNamespace)) > 0 {
		problem("namespace %q of OpenKruise is not a valid name of a Namespace", c.OpenKruiseNamespace)
	}
	if c.WebhookPort < 1 || c.WebhookPort > 65535 {
		problem("webhook port %d is not between 1 and 65535", c.WebhookPort)
	}
	if len(validation.IsDNS1123Subdomain(c.CertSecret)) > 0 {
		problem("certificate secret %q is not a valid name of a Secret", c.CertSecret)
	}
	problems = append(problems, checkNamespaces("namespace of callers of the webhooks", c.WebhookNamespaces), checkNamespaces("excluded namespace", c.ExcludedNamespaces))
	if c.MetricsAddr != "0" {
		if err := checkAddress(c.MetricsAddr); err != nil {
			problem("metrics address: %w", err)
		}
	}
	if err := checkAddress(c.HealthAddr); err != nil {
		problem("health address: %w", err)
	}
	if c.Workers < 1 {
		problem("%d workers: at least 1 is needed", c.Workers)
	}
	if err := c.Tracing.Validate(); err != nil {
		problems = append(problems, err)
	}
	if c.Logger == nil {
		problem("no logger")
	}
	return errors.Join(problems...)
}

// revisionNamespace returns the namespace of OpenKruise's ControllerRevisions; empty to read none.
func (c Config) revisionNamespace() string {
	if !c.OpenKruiseRevisions {
		return ""
	}
	return c.OpenKruiseNamespace
}

// checkNamespaces returns an error for each name that no Namespace can have. what says what they are.
func checkNamespaces(what string, names []string) error {
	var problems []error
	for _, name := range names {
		if len(validation.IsDNS1123Label(name)) > 0 {
			problems = append(problems, fmt.Errorf("%s: %q is not a valid name of a Namespace", what, name))
		}
	}
	return errors.Join(problems...)
}

func checkAddress(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("%q has no port between 0 and 65535", address)
	}
	return nil
}

// onLoopback reports whether only processes of the same pod can reach the address.
func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/refit-project/refit/manager"
)

// configured runs the command line and returns the configuration that the manager gets.
func configured(t *testing.T, args ...string) (manager.Config, error) {
	t.Helper()
	var cfg manager.Config
	command := newCommand("1.2.3", func(_ context.Context, c manager.Config) error { cfg = c; return nil })
	command.SetErr(io.Discard)
	command.SetOut(io.Discard)
	command.SetArgs(args)
	err := command.ExecuteContext(t.Context())
	return cfg, err
}

func TestDefaults(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "system")
	t.Setenv("KUBECONFIG", "/etc/kubeconfig")
	got, err := configured(t)
	if err != nil {
		t.Fatal(err)
	}
	got.Logger = nil
	want := manager.Config{
		Kubeconfig: "/etc/kubeconfig", Namespace: "system", OpenKruiseNamespace: "kruise-system", WebhookPort: 9443, CertSecret: "refit-manager-webhook-cert",
		MetricsAddr: "127.0.0.1:8080", HealthAddr: ":8081", LeaderElect: true, Workers: 8,
		RefusePods: true, WebhookNamespaces: []string{"kube-system"},
		Images: true, PullSecretNamespace: "kruise-daemon-config", PodProbes: true, ServerlessProbes: true, EmptyNodePodProbes: true,
		SidecarSets: true, SidecarSetRollout: true, ContainerRecreateRequests: true, ReadinessGates: true, RestartRollouts: true, InPlaceUpdates: true, HoldWebhook: true, ConfigChanges: true,
		Version: "1.2.3",
	}
	want.Tracing.SamplingRatePerMillion = 1_000_000
	if !reflect.DeepEqual(got, want) {
		t.Errorf("configured %+v, want %+v", got, want)
	}
}

// Every flag arrives in its field and in no other.
func TestEachFlagIsWiredThrough(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	t.Setenv("KUBECONFIG", "")
	tested := map[string]bool{}
	for _, tt := range []struct {
		arg  string
		edit func(*manager.Config) // of the defaults
	}{
		{"--kubeconfig=/k", func(c *manager.Config) { c.Kubeconfig = "/k" }},
		{"--namespace=n", func(c *manager.Config) { c.Namespace = "n" }},
		{"--openkruise-namespace=k", func(c *manager.Config) { c.OpenKruiseNamespace = "k" }},
		{"--openkruise-revisions", func(c *manager.Config) { c.OpenKruiseRevisions = true }},
		{"--webhook-port=1", func(c *manager.Config) { c.WebhookPort = 1 }},
		{"--cert-secret=s", func(c *manager.Config) { c.CertSecret = "s" }},
		{"--webhook-refuse-pods=false", func(c *manager.Config) { c.RefusePods = false }},
		{"--webhook-allowed-namespaces=a,b", func(c *manager.Config) { c.WebhookNamespaces = []string{"a", "b"} }},
		{"--webhook-excluded-namespaces=a,b", func(c *manager.Config) { c.ExcludedNamespaces = []string{"a", "b"} }},
		{"--webhook-client-ca-file=/ca", func(c *manager.Config) { c.WebhookClientCAFile = "/ca" }},
		{"--metrics-addr=:1", func(c *manager.Config) { c.MetricsAddr = ":1" }},
		{"--health-addr=:2", func(c *manager.Config) { c.HealthAddr = ":2" }},
		{"--leader-elect=false", func(c *manager.Config) { c.LeaderElect = false }},
		{"--workers=3", func(c *manager.Config) { c.Workers = 3 }},
		{"--sidecarset-rollout=false", func(c *manager.Config) { c.SidecarSetRollout = false }},
		{"--images=false", func(c *manager.Config) { c.Images = false }},
		{"--pull-secret-namespace=p", func(c *manager.Config) { c.PullSecretNamespace = "p" }},
		{"--container-recreate-requests=false", func(c *manager.Config) { c.ContainerRecreateRequests = false }},
		{"--readiness-gates=false", func(c *manager.Config) { c.ReadinessGates = false }},
		{"--pod-probes=false", func(c *manager.Config) { c.PodProbes = false }},
		{"--serverless-probes=false", func(c *manager.Config) { c.ServerlessProbes = false }},
		{"--empty-node-pod-probes=false", func(c *manager.Config) { c.EmptyNodePodProbes = false }},
		{"--restart-rollouts=false", func(c *manager.Config) { c.RestartRollouts = false }},
		{"--in-place-updates=false", func(c *manager.Config) { c.InPlaceUpdates = false }},
		{"--hold-webhook=false", func(c *manager.Config) { c.HoldWebhook = false }},
		{"--restart-on-config-change=false", func(c *manager.Config) { c.ConfigChanges = false }},
		{"--restart-on-secret-change", func(c *manager.Config) { c.SecretChanges = true }},
		{"--sidecar-sets=false", func(c *manager.Config) { c.SidecarSets = false }},
		{"--tracing-endpoint=t:4317", func(c *manager.Config) { c.Tracing.Endpoint = "t:4317" }},
		{"--tracing-sampling-rate=4", func(c *manager.Config) { c.Tracing.SamplingRatePerMillion = 4 }},
	} {
		name, _, _ := strings.Cut(strings.TrimPrefix(tt.arg, "--"), "=")
		tested[name] = true
		want, err := configured(t)
		if err != nil {
			t.Fatal(err)
		}
		got, err := configured(t, tt.arg)
		if err != nil {
			t.Errorf("%s: %v", tt.arg, err)
			continue
		}
		want.Logger, got.Logger = nil, nil
		tt.edit(&want)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: configured %+v, want %+v", tt.arg, got, want)
		}
	}
	newCommand("", nil).LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) {
		if !tested[flag.Name] && flag.Name != "help" && flag.Name != "version" {
			t.Errorf("flag --%s is not in the table", flag.Name)
		}
	})
}

func TestLogFlagsReachTheLogger(t *testing.T) {
	t.Parallel()
	cfg, err := configured(t, "--log-level=debug", "--log-format=json")
	if err != nil || !cfg.Logger.Enabled(t.Context(), slog.LevelDebug) {
		t.Fatalf("err = %v, debug is not logged", err)
	}
	if got := reflect.TypeOf(cfg.Logger.Handler()).String(); got != "*slog.JSONHandler" {
		t.Errorf("handler %s", got)
	}
}

func TestBadFlagsAreRefused(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"log format": {"--log-format=xml"}, "log level": {"--log-level=loud"}, "argument": {"now"},
		"switch": {"--container-recreate-requests=no"}, "spelling": {"--container-recreate-request=false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := configured(t, args...); err == nil {
				t.Error("accepted")
			}
		})
	}
}

func TestErrorOfTheManagerIsReturned(t *testing.T) {
	t.Parallel()
	failure := errors.New("no")
	command := newCommand("", func(context.Context, manager.Config) error { return failure })
	command.SetArgs(nil)
	command.SetErr(io.Discard)
	if err := command.ExecuteContext(t.Context()); !errors.Is(err, failure) {
		t.Errorf("err = %v, want %v", err, failure)
	}
}

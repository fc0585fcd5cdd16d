package manager_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/refit-project/refit/manager"
)

func valid() manager.Config {
	return manager.Config{
		Namespace: "refit-system", OpenKruiseNamespace: "kruise-system", WebhookPort: 9443, CertSecret: "cert", MetricsAddr: "127.0.0.1:8080", HealthAddr: ":8081", Workers: 1, Logger: slog.New(slog.DiscardHandler),
	}
}

func TestConfigValidate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		edit func(*manager.Config)
		want []string // parts of the error; none for a valid configuration
	}{
		"valid":                       {edit: func(*manager.Config) {}},
		"no metrics":                  {edit: func(c *manager.Config) { c.MetricsAddr = "0" }},
		"port":                        {edit: func(c *manager.Config) { c.WebhookPort = 70000 }, want: []string{"webhook port 70000"}},
		"metrics address":             {edit: func(c *manager.Config) { c.MetricsAddr = "8080" }, want: []string{"metrics address"}},
		"health address without port": {edit: func(c *manager.Config) { c.HealthAddr = "localhost:x" }, want: []string{"health address"}},
		"no name of a secret":         {edit: func(c *manager.Config) { c.CertSecret = "a b" }, want: []string{"certificate secret"}},
		"namespace of OpenKruise":     {edit: func(c *manager.Config) { c.OpenKruiseNamespace = "a b" }, want: []string{`namespace "a b" of OpenKruise`}},
		"namespace of callers":        {edit: func(c *manager.Config) { c.WebhookNamespaces = []string{"kube-system", "*"} }, want: []string{`namespace of callers of the webhooks: "*"`}},
		"excluded namespace":          {edit: func(c *manager.Config) { c.ExcludedNamespaces = []string{"shop", "*"} }, want: []string{`excluded namespace: "*"`}},
		"tracing": {
			edit: func(c *manager.Config) { c.Tracing.Endpoint, c.Tracing.SamplingRatePerMillion = "t", -3 },
			want: []string{`--tracing-endpoint "t"`, "--tracing-sampling-rate -3"},
		},
		"all errors at once": {
			edit: func(c *manager.Config) { *c = manager.Config{} },
			want: []string{"namespace", "webhook port", "certificate secret", "metrics address", "health address", "0 workers", "no logger"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := valid()
			tc.edit(&cfg)
			err := cfg.Validate()
			if (err == nil) != (len(tc.want) == 0) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q lacks %q", err, part)
				}
			}
		})
	}
}

func TestRunChecksItsConfiguration(t *testing.T) {
	t.Parallel()
	if err := manager.Run(t.Context(), manager.Config{}); err == nil || !strings.Contains(err.Error(), "no logger") {
		t.Errorf("got %v", err)
	}
}

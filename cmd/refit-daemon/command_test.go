package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/refit-project/refit/cri"
	"github.com/refit-project/refit/daemon"
)

// configured runs the command line and returns the configuration that the daemon gets, and what was logged.
func configured(t *testing.T, args ...string) (daemon.Config, string, error) {
	t.Helper()
	var config daemon.Config
	command := newCommand("1.2.3", func(_ context.Context, c daemon.Config, _ *slog.Logger) error { config = c; return nil })
	var log bytes.Buffer
	command.SetErr(&log)
	command.SetOut(&log)
	command.SetArgs(args)
	err := command.ExecuteContext(t.Context())
	return config, log.String(), err
}

func TestDefaults(t *testing.T) {
	t.Setenv("NODE_NAME", "node-1")
	t.Setenv("KUBECONFIG", "/etc/kubeconfig")
	got, log, err := configured(t)
	if err != nil || log != "" {
		t.Fatalf("err = %v, logged %q", err, log)
	}
	got.Logger = nil
	want := daemon.Config{
		Node: "node-1", Kubeconfig: "/etc/kubeconfig", SocketRoots: cri.DefaultRoots(), Addr: ":10221", MetricsAddr: "127.0.0.1:10223",
		MaxConcurrent: 256, MaxPulls: 3, ExecProbeCPUPercent: 25, PullSecretNamespace: "kruise-daemon-config", Version: "1.2.3",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("configured %+v, want %+v", got, want)
	}
}

func TestEachFlagIsWiredThrough(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		got  func(daemon.Config) any
		want any
	}{
		{[]string{"--kubeconfig=/k"}, func(c daemon.Config) any { return c.Kubeconfig }, "/k"},
		{[]string{"--socket-file=/run/crio/crio.sock"}, func(c daemon.Config) any { return c.Socket }, "/run/crio/crio.sock"},
		{[]string{"--socket-file=unix:///run/c.sock"}, func(c daemon.Config) any { return c.Socket }, "unix:///run/c.sock"},
		{[]string{"--socket-file=crio.sock", "--socket-root=/hostvarrun/crio,/run"}, func(c daemon.Config) any { return c.Socket }, "/hostvarrun/crio/crio.sock"},
		{[]string{"--socket-root=/a", "--socket-root=/b"}, func(c daemon.Config) any { return c.SocketRoots }, []string{"/a", "/b"}},
		{[]string{"--exec-probe-cpu-percent=50"}, func(c daemon.Config) any { return c.ExecProbeCPUPercent }, 50},
		{[]string{"--max-workers-for-pull-image=2"}, func(c daemon.Config) any { return c.MaxPulls }, 2},
		{[]string{"--max-workers-for-pull-image=-1"}, func(c daemon.Config) any { return c.MaxPulls }, 32},
		{[]string{"--pull-secret-namespace=n"}, func(c daemon.Config) any { return c.PullSecretNamespace }, "n"},
		{[]string{"--addr=:1"}, func(c daemon.Config) any { return c.Addr }, ":1"},
		{[]string{"--metrics-addr="}, func(c daemon.Config) any { return c.MetricsAddr }, ""},
		{[]string{"--pprof-addr=127.0.0.1:2"}, func(c daemon.Config) any { return c.PprofAddr }, "127.0.0.1:2"},
		{[]string{"--pprof-addr=127.0.0.1:2", "--enable-pprof=false"}, func(c daemon.Config) any { return c.PprofAddr }, ""},
		{[]string{"--max-concurrent-stops=7"}, func(c daemon.Config) any { return c.MaxConcurrent }, 7},
		{[]string{"--restart-backoff=respect"}, func(c daemon.Config) any { return c.RespectBackoff }, true},
		{[]string{"--restart-backoff=skip"}, func(c daemon.Config) any { return c.RespectBackoff }, false},
		{[]string{"--tracing-endpoint=c:4317"}, func(c daemon.Config) any { return c.Tracing.Endpoint }, "c:4317"},
		{[]string{"--log-level=debug"}, func(c daemon.Config) any { return c.Logger.Enabled(t.Context(), slog.LevelDebug) }, true},
		{[]string{"--log-level=warn"}, func(c daemon.Config) any { return c.Logger.Enabled(t.Context(), slog.LevelInfo) }, false},
		{[]string{"--log-format=json"}, func(c daemon.Config) any { return reflect.TypeOf(c.Logger.Handler()).String() }, "*slog.JSONHandler"},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			t.Parallel()
			config, _, err := configured(t, tt.args...)
			if err != nil {
				t.Fatal(err)
			}
			if got := tt.got(config); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("configured %v, want %v", got, tt.want)
			}
		})
	}
}

func TestWrongValuesAreRefused(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]string{
		"--restart-backoff=never":     "--restart-backoff",
		"--log-format=xml":            "--log-format",
		"--log-level=loud":            "log-level",
		"--max-concurrent-stops=many": "max-concurrent-stops",
		"--max-conccurent-stops=1":    "unknown flag",
		"stop":                        "unknown command",
	} {
		t.Run(arg, func(t *testing.T) {
			t.Parallel()
			if _, _, err := configured(t, arg); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("err = %v, want one about %s", err, want)
			}
		})
	}
}

// The arguments of kruise-daemon 1.9's manifest and of its Helm chart, and every other flag it has.
func TestFlagsOfKruiseDaemonAreIgnoredWithAWarning(t *testing.T) {
	t.Parallel()
	config, log, err := configured(t, "--addr=:10221", "--logtostderr=true", "-v=5", "--feature-gates=AllAlpha=true,AllBeta=true",
		"--max-workers-for-pull-image=2", "--plugin-config-file=/kruise/CredentialProviderPlugin.yaml", "--plugin-bin-dir=/kruise/plugins",
		"--expectation-timeout=5m", "--rest-config-qps=10", "--rest-config-burst=20", "--alsologtostderr", "--add_dir_header",
		"--log_backtrace_at=x.go:1", "--log_dir=/tmp", "--log_file=/tmp/x", "--log_file_max_size=1", "--one_output", "--skip_headers",
		"--skip_log_headers", "--stderrthreshold=2", "--vmodule=a=1", "--pprof-addr=:10222", "--enable-pprof", "--socket-file=containerd.sock")
	if err != nil {
		t.Fatal(err)
	}
	if config.Addr != ":10221" || config.PprofAddr != "" || config.PluginConfig != "/kruise/CredentialProviderPlugin.yaml" || config.PluginFolder != "/kruise/plugins" {
		t.Errorf("configured %+v", config)
	}
	for _, want := range []string{"--feature-gates", "--rest-config-qps", "--log-dir", "--v", ":10222"} {
		if !strings.Contains(log, want) {
			t.Errorf("no warning about %s: %s", want, log)
		}
	}
	if n := strings.Count(log, "\n"); n != 2 {
		t.Errorf("%d lines of warnings, want one about ignored flags and one about profiles: %s", n, log)
	}
}

func TestErrorOfTheDaemonIsReturned(t *testing.T) {
	t.Parallel()
	failure := errors.New("no")
	command := newCommand("", func(context.Context, daemon.Config, *slog.Logger) error { return failure })
	command.SetArgs(nil)
	if err := command.ExecuteContext(t.Context()); !errors.Is(err, failure) {
		t.Errorf("err = %v, want %v", err, failure)
	}
}

package main

import (
	"io"
	"strings"
	"testing"
)

// Every flag has to arrive in the configuration, which names each value it does not like.
func TestFlagsReachTheConfiguration(t *testing.T) {
	t.Parallel()
	cmd := command("v0")
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	cmd.SetArgs([]string{
		"--namespace=A", "--webhook-port=-1", "--cert-secret=D d",
		"--metrics-addr=e", "--health-addr=f", "--workers=-2", "--tracing-endpoint=t", "--tracing-sampling-rate=-3", "--log-level=error",
	})
	err := cmd.ExecuteContext(t.Context())
	if err == nil {
		t.Fatal("accepted")
	}
	for _, part := range []string{`"A"`, "-1", `"D d"`, "address e", "address f", "-2 workers", `--tracing-endpoint "t"`, "--tracing-sampling-rate -3"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error lacks %s:\n%v", part, err)
		}
	}
}

func TestBadFlagsAreRefused(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"log format": {"--log-format=xml"}, "log level": {"--log-level=loud"}, "argument": {"now"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := command("v0")
			cmd.SetOut(io.Discard)
			cmd.SetErr(io.Discard)
			cmd.SetArgs(args)
			if err := cmd.ExecuteContext(t.Context()); err == nil {
				t.Error("accepted")
			}
		})
	}
}

package main

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the published schema")

func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := newCommand("v0")
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// Every flag has to arrive in the configuration, which names what it does not like.
func TestFlagsReachTheConfiguration(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"grace":      {[]string{"--grace=-1s"}, "-1s"},
		"where":      {[]string{"--config=x.yaml"}, "POD_NAME"},
		"log format": {[]string{"--log-format=xml"}, "xml"},
		"log level":  {[]string{"--log-level=loud"}, "loud"},
		"argument":   {[]string{"now"}, "now"},
	} {
		if _, err := execute(t, tt.args...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	if out, err := execute(t, "validate", "../../deploy/sidecar/30-config.yaml"); err != nil || !strings.Contains(out, "valid") {
		t.Errorf("the example: %s %v", out, err)
	}
	bad := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(bad, []byte("plugins:\n- name: hot_update\n  config:\n    loadPatchTyp: signal\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := execute(t, "validate", bad); err == nil || !strings.Contains(err.Error(), `config.yaml:4: unknown key "loadPatchTyp"; did you mean "loadPatchType"?`) {
		t.Errorf("%v", err)
	}
	if _, err := execute(t, "validate", bad+"x"); err == nil {
		t.Error("a file that is not there is valid")
	}
}

// The published schema is the program's.
func TestPublishedSchema(t *testing.T) {
	t.Parallel()
	const path = "../../deploy/sidecar/config.schema.json"
	got, err := execute(t, "schema")
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is outdated: go test ./cmd/refit-sidecar -update", path)
	}
}

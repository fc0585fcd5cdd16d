package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args  []string
		epoch string
		check func(Config) bool
		// faults must all be named at once.
		faults []string
	}{
		"defaults": {check: func(c Config) bool {
			return c.Version == "dev" && c.Out == "/src/dist/images" && c.Platforms[0] == "linux/"+runtime.GOARCH &&
				c.RootUser[0] == "refit-daemon" && c.Created.Equal(time.Unix(0, 0))
		}},
		"lists with commas and again": {
			args:  []string{"--platforms", "linux/amd64,linux/arm64", "--platforms=linux/arm/v7", "--extra", "app=test/app"},
			check: func(c Config) bool { return len(c.Platforms) == 3 && c.Extra[0] == "app=test/app" },
		},
		"dated":             {epoch: "1700000000", check: func(c Config) bool { return c.Created.Unix() == 1_700_000_000 }},
		"date that is none": {epoch: "today", faults: []string{"SOURCE_DATE_EPOCH"}},
		"argument":          {args: []string{"build"}, faults: []string{"build"}},
		"all faults at once": {
			args:   []string{"--platforms", "windows/amd64,linux", "--extra", "App", "--push", "host/Upper"},
			faults: []string{"windows/amd64", `"linux"`, "App", "Upper"},
		},
		"version that is no tag": {args: []string{"--version", "a b"}, faults: []string{"a b"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, err := parse(append([]string{"--root", "/src"}, test.args...), test.epoch)
			if err == nil && (len(test.faults) > 0 || !test.check(config)) {
				t.Fatalf("parse = %+v, want faults %q", config, test.faults)
			}
			if err != nil && len(test.faults) == 0 {
				t.Fatal(err)
			}
			for _, fault := range test.faults {
				if !strings.Contains(err.Error(), fault) {
					t.Errorf("error %q does not name %q", err, fault)
				}
			}
		})
	}
}

func TestRootIsFoundFromTheFolderOfTheProgram(t *testing.T) {
	t.Parallel()
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "cmd", "refit-daemon")); err != nil {
		t.Errorf("%s does not hold the programs: %v", root, err)
	}
}

package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestHugePagesAreSetBack(t *testing.T) {
	t.Parallel()
	for before, want := range map[string]string{"always [madvise] never\n": "always", "always madvise [never]\n": "always madvise [never]\n", "[always] madvise never\n": "[always] madvise never\n"} {
		setting := filepath.Join(t.TempDir(), "enabled")
		if err := os.WriteFile(setting, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		restore := withHugePages(setting)
		got, _ := os.ReadFile(setting) // compared below
		if string(got) != want {
			t.Errorf("%q is %q during the tests", before, got)
		}
		if err := restore(); err != nil {
			t.Error(err)
		}
		if got, _ := os.ReadFile(setting); want == "always" && string(got) != "madvise" || want != "always" && string(got) != before {
			t.Errorf("%q is %q afterwards", before, got)
		}
	}
	if err := withHugePages(filepath.Join(t.TempDir(), "none"))(); err != nil {
		t.Error(err)
	}
}

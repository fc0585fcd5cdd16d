package records_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/test/chaos/records"
)

// The log of a manager that a fault has replaced is kept, with what it wrote after it was first seen.
func TestLogsOutliveTheirPods(t *testing.T) {
	t.Parallel()
	pods, folder := t.TempDir(), t.TempDir()
	manager := filepath.Join(pods, "refit-system_refit-manager-1_uid", "manager")
	for _, container := range []string{manager, filepath.Join(pods, "shop_web_uid", "app")} {
		if err := os.MkdirAll(container, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(container, "0.log"), []byte("first\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func() {
		t.Helper()
		if err := records.LinkLogs(folder, "node-1", pods, "refit-system"); err != nil {
			t.Fatal(err)
		}
	}
	link()
	log, err := os.OpenFile(filepath.Join(manager, "0.log"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	link() // again, as in a run
	if err := os.RemoveAll(filepath.Dir(manager)); err != nil {
		t.Fatal(err)
	}
	if _, err := log.WriteString("last\n"); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	link()
	kept, err := filepath.Glob(filepath.Join(folder, records.Logs, "*"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(folder, records.Logs, "node-1_refit-manager-1_uid_manager_0.log")}
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Fatalf("kept logs (-want +got):\n%s", diff)
	}
	content, err := os.ReadFile(kept[0])
	if err != nil || string(content) != "first\nlast\n" {
		t.Errorf("kept %q, %v", content, err)
	}
}

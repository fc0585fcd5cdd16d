package hotupdate_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/hotupdate"
)

// Rollback: N revisions are kept, and the current one is the last accepted one, not the highest version.
func TestRollback(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, func(c *hotupdate.Config) { c.Keep = 3 })
	if _, err := b.Rollback(t.Context(), ""); !errors.Is(err, hotupdate.ErrUnknownRevision) {
		t.Errorf("nothing to go back to: %v", err)
	}
	ids := map[string]string{}
	for _, v := range []string{"v1", "v9", "v2", "v3"} {
		ids[v] = b.apply(t, inline(v, files{"a": v, "only-" + v: v})).Revision.ID
	}
	b.checkRevisions(t, "v3", "v2", "v9")
	if _, err := b.Rollback(t.Context(), ids["v1"]); !errors.Is(err, hotupdate.ErrUnknownRevision) {
		t.Errorf("to one that is pruned: %v", err)
	}
	if _, err := b.Rollback(t.Context(), "../../etc"); !errors.Is(err, hotupdate.ErrUnknownRevision) {
		t.Errorf("to a path: %v", err)
	}
	if res, err := b.Rollback(t.Context(), ""); err != nil || !res.Changed || res.Revision.Version != "v2" {
		t.Fatalf("%+v, %v", res, err)
	}
	b.check(t, files{"a": "v2", "only-v2": "v2"})
	if _, err := b.Rollback(t.Context(), ids["v9"]); err != nil {
		t.Fatal(err)
	}
	b.check(t, files{"a": "v9", "only-v9": "v9"})
	b.checkRevisions(t, "v9", "v2", "v3")
	b.checkTold(t, "v1", "v9", "v2", "v3", "v2", "v9")

	b.Close()
	b.open(t, nil)
	b.check(t, files{"a": "v9", "only-v9": "v9"})
	b.checkRevisions(t, "v9", "v2", "v3")
}

func (b *bench) checkRevisions(t *testing.T, want ...string) {
	t.Helper()
	all := b.Revisions()
	var got []string
	for _, r := range all {
		got = append(got, r.Version)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
}

// The program can write where revisions are stored. Files that it has changed are not put in force again.
func TestRollbackRefusesAChangedRevision(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, nil)
	old := b.apply(t, inline("v1", files{"a": "1"})).Revision.ID
	b.apply(t, inline("v2", files{"a": "2"}))
	if err := os.WriteFile(filepath.Join(b.dir, "..refit/revisions", old, "files/a"), []byte("evil"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Rollback(t.Context(), ""); !errors.Is(err, hotupdate.ErrTampered) {
		t.Errorf("err = %v", err)
	}
	b.check(t, files{"a": "2"})
}

func TestReloadRunsTheActionsAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, nil)
	b.apply(t, inline("v1", files{"a": "1"}))
	if err := b.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.checkTold(t, "v1", "v1")
}

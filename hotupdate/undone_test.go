package hotupdate_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/refit-project/refit/hotupdate"
)

// The state cannot be written after the program was reloaded: the old files are restored, and the program is reloaded
// again.
func TestAnUpdateThatCannotBeRecordedIsTakenBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, nil)
	b.apply(t, inline("v1", files{"a": "1"}))
	b.Close()
	b.told = nil
	state := filepath.Join(b.dir, "..refit/state.json")
	config := hotupdate.Config{Dir: b.dir, Reload: b.reload()}
	u, err := hotupdate.OpenWithSteps(t.Context(), config, func(name string) {
		if name == "verified" { // a rename does not replace a folder
			if err := errors.Join(os.Remove(state), os.MkdirAll(state+"/x", 0o700)); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	_, err = u.Apply(t.Context(), inline("v2", files{"a": "2"}))
	var failure *hotupdate.Failure
	if !errors.As(err, &failure) || !failure.RolledBack {
		t.Errorf("err = %v", err)
	}
	b.check(t, files{"a": "1"})
	b.checkTold(t, "v2", "v1")
}

// Killed between the new links and the swap: the new names are not in the folder afterwards.
func TestAnInterruptedUpdateLeavesNoLinks(t *testing.T) {
	t.Parallel()
	for last := 1; ; last++ {
		b := newBench(t, nil, nil)
		b.apply(t, inline("v1", files{"a": "1"}))
		b.Close()
		step := runVictim(t, b.dir, last)
		if step == "" {
			t.Fatal("never killed at linked")
		}
		if step != "linked" {
			continue
		}
		if _, err := os.Lstat(filepath.Join(b.dir, "added")); err != nil {
			continue // of the start
		}
		b.open(t, nil)
		b.checkLinks(t, "a")
		return
	}
}

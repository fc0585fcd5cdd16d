package cli_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/table"
)

func TestHistoryOfASidecarSet(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if err := f.config.History(t.Context(), table.Options{}, &f.out, "mesh", 0); err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{"1 mesh-1 proxy=proxy:1", "3 mesh-3 yes proxy=proxy:3"} {
		found := false
		for line := range strings.Lines(f.out.String()) {
			found = found || strings.HasPrefix(strings.Join(strings.Fields(line), " "), row)
		}
		if !found {
			t.Errorf("no %q in:\n%s", row, f.out.String())
		}
	}
	f.out.Reset()
	if err := f.config.History(t.Context(), table.Options{}, &f.out, "mesh", 2); err != nil || !strings.Contains(f.out.String(), "image: proxy:2") {
		t.Errorf("%v:\n%s", err, f.out.String())
	}
	if err := f.config.History(t.Context(), table.Options{}, &f.out, "mesh", 7); console.ExitCode(err) != console.ExitRefused {
		t.Errorf("%v", err)
	}
}

func TestARolloutOfASidecarSetIsFollowedToItsEnd(t *testing.T) {
	t.Parallel()
	for state, code := range map[string]int{"Completed": console.ExitDone, "Completed,Degraded": console.ExitFailed, "Updating": console.ExitTimeout, "unseen": console.ExitTimeout} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t)
			set := f.stored(t)
			progressing, degraded, _ := strings.Cut(state, ",")
			meta.SetStatusCondition(&set.Status.Conditions, metav1.Condition{Type: "Progressing", Status: metav1.ConditionTrue, Reason: progressing})
			if degraded != "" {
				meta.SetStatusCondition(&set.Status.Conditions, metav1.Condition{Type: "Degraded", Status: metav1.ConditionTrue, Reason: "NotUpgradable"})
			}
			if state == "unseen" {
				set.Generation++
			}
			if err := f.config.API.Update(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, fmt.Errorf("the rollout is %w", console.ErrTimeout))
			defer cancel()
			if err := f.config.Follow(ctx, console.NewOutput(&f.out, false), "mesh"); console.ExitCode(err) != code {
				t.Errorf("%s: %v", state, err)
			}
			if strings.Contains(f.out.String(), "does not process SidecarSets (manager.features.sidecarSets") != (state == "unseen") {
				t.Errorf("%s:\n%s", state, f.out.String())
			}
			if !strings.Contains(f.out.String(), "2 of 5 pods updated") && code != console.ExitFailed {
				t.Errorf("%s:\n%s", state, f.out.String())
			}
		})
	}
}

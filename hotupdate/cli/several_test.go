package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/refit-project/refit/hotupdate/cli"
	"github.com/refit-project/refit/internal/console"
)

// fleet are the sidecars of several pods.
type fleet struct {
	configs []cli.Config
	mutex   sync.Mutex
	busy    int
	most    int // how many pods were updated at a time
	asked   int
}

// newFleet has pods that answer after a moment, the named ones with a status.
func newFleet(t *testing.T, pods int, answers map[int]int) (*fleet, *strings.Builder) {
	t.Helper()
	f := &fleet{}
	said := &strings.Builder{}
	output := console.NewOutput(said, false)
	for i := range pods {
		config, _ := to(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			f.count(1)
			<-time.After(20 * time.Millisecond)
			f.count(-1)
			if code := answers[i]; code != 0 {
				w.WriteHeader(code)
				_ = json.NewEncoder(w).Encode(map[string]string{"error": "nginx -t: exit code 1"})
				return
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"version": "v3", "changed": true})
		}))
		config.Pod, config.Output = fmt.Sprintf("web-%d", i), output
		f.configs = append(f.configs, config)
	}
	return f, said
}

func (f *fleet) count(n int) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.busy += n
	f.most, f.asked = max(f.most, f.busy), f.asked+max(n, 0)
}

var v3 = cli.Change{Version: "v3", Files: []cli.File{{Name: "a", Data: []byte("x")}}}

func TestSeveralPodsAreUpdatedAFewAtATime(t *testing.T) {
	t.Parallel()
	f, said := newFleet(t, 5, nil)
	if err := cli.UpdateAll(t.Context(), f.configs, v3, 2); err != nil {
		t.Fatal(err)
	}
	if f.asked != 5 || f.most > 2 || strings.Count(said.String(), "version v3 is in use") != 5 {
		t.Errorf("%d pods, %d at a time:\n%s", f.asked, f.most, said)
	}
}

func TestAFailureBeginsNoFurtherPod(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		failed, status, code int
		words                []string
	}{
		"a failed check":                {1, http.StatusInternalServerError, console.ExitFailed, []string{"pod web-1: nginx -t: exit code 1", "done: 1 of 4 pods", "not begun: web-2 web-3"}},
		"the first pod refuses it":      {0, http.StatusBadRequest, console.ExitRefused, []string{"pod web-0", "done: 0 of 4 pods"}},
		"a later pod refuses it":        {1, http.StatusBadRequest, console.ExitFailed, []string{"pod web-1", "done: 1 of 4 pods"}}, // the first one is changed
		"the last pod fails by itself":  {3, http.StatusInternalServerError, console.ExitFailed, []string{"done: 3 of 4 pods"}},
		"nothing that is not known yet": {2, http.StatusNotFound, console.ExitFailed, []string{"hot_update", "not begun: web-3"}},
	} {
		f, _ := newFleet(t, 4, map[int]int{tc.failed: tc.status})
		err := cli.UpdateAll(t.Context(), f.configs, v3, 1)
		if f.asked != tc.failed+1 || console.ExitCode(err) != tc.code {
			t.Errorf("%s: %d pods, exit code %d: %v", name, f.asked, console.ExitCode(err), err)
			continue
		}
		for _, words := range tc.words {
			if !strings.Contains(err.Error(), words) {
				t.Errorf("%s: no %q in %v", name, words, err)
			}
		}
	}
}

func TestInterruptedUpdateOfSeveralPodsSaysWhatIsLeft(t *testing.T) {
	t.Parallel()
	f, _ := newFleet(t, 3, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("Ctrl-C"))
	err := cli.UpdateAll(ctx, f.configs, v3, 1)
	if console.ExitCode(err) != console.ExitInterrupted || f.asked > 0 || !strings.Contains(err.Error(), "not begun: web-0 web-1 web-2") {
		t.Errorf("%d pods: %v", f.asked, err)
	}
}

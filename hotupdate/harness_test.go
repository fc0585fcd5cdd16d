package hotupdate_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/hotupdate/action"
	"github.com/refit-project/refit/hotupdate/fetch"
)

func TestMain(m *testing.M) {
	if os.Getenv(victimEnv) != "" {
		beVictim()
		return
	}
	goleak.VerifyTestMain(m)
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// step makes a function a Step.
type step func(ctx context.Context, r action.Release) error

func (s step) Run(ctx context.Context, r action.Release) error { return s(ctx, r) }

// bench is a folder with its updater and the calls of its reload actions.
type bench struct {
	*hotupdate.Updater
	dir string

	mu   sync.Mutex
	told []string
}

// newBench opens an updater over a new folder; files are in it before.
func newBench(t *testing.T, files map[string]string, change func(*hotupdate.Config)) *bench {
	t.Helper()
	b := &bench{dir: memoryDir(t)}
	for name, text := range files {
		path := filepath.Join(b.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	b.open(t, change)
	return b
}

// memoryDir returns a folder in memory if there is one: the order of operations is tested, and each of hundreds of updates
// waits for the disk several times.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "refit-hotupdate-") //nolint:usetesting // in memory
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (b *bench) open(t *testing.T, change func(*hotupdate.Config)) {
	t.Helper()
	config := hotupdate.Config{Dir: b.dir, Fetch: fetch.Config{AllowNetworks: loopback}, Reload: b.reload()}
	if change != nil {
		change(&config)
	}
	u, err := hotupdate.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	b.Updater = u
	t.Cleanup(u.Close)
}

// reload records the versions that the program is reloaded for.
func (b *bench) reload() []action.Action {
	return []action.Action{{Name: "record", Step: step(func(ctx context.Context, r action.Release) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.told = append(b.told, r.Version)
		return nil
	})}}
}

func (b *bench) apply(t *testing.T, req hotupdate.Request) hotupdate.Result {
	t.Helper()
	res, err := b.Apply(t.Context(), req)
	if err != nil {
		t.Fatalf("apply %s: %v", req.Version, err)
	}
	return res
}

// inline is a request with its files at hand.
func inline(version string, files map[string]string) hotupdate.Request {
	req := hotupdate.Request{Version: version}
	for name, text := range files {
		req.Sources = append(req.Sources, hotupdate.Source{Name: name, Data: []byte(text)})
	}
	return req
}

// see reads the folder as the program does: through the links, without the updater's own files.
func see(t *testing.T, dir string) map[string]string {
	t.Helper()
	seen := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		if err != nil || strings.HasPrefix(name, "..") {
			if d != nil && d.IsDir() && name != "." {
				return fs.SkipDir
			}
			return err
		}
		if d.IsDir() {
			return nil
		}
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a link to a file that the revision does not have
		}
		seen[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

func (b *bench) check(t *testing.T, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, see(t, b.dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func (b *bench) checkTold(t *testing.T, want ...string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if diff := cmp.Diff(want, b.told); diff != "" {
		t.Errorf("reloads by version (-want +got):\n%s", diff)
	}
}

// leftovers lists what an update must not leave: stages and revisions beyond the accepted ones.
func (b *bench) checkClean(t *testing.T) {
	t.Helper()
	all := b.Revisions()
	for dir, most := range map[string]int{"..refit/tmp": 0, "..refit/revisions": len(all)} {
		entries, err := os.ReadDir(filepath.Join(b.dir, dir))
		if err != nil || len(entries) > most {
			t.Errorf("%s holds %v, %v", dir, entries, err)
		}
	}
}

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func text(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(s)) }
}

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

func failing(reason string) []action.Action {
	return []action.Action{{Name: "judge", Step: step(func(context.Context, action.Release) error { return errors.New(reason) })}}
}

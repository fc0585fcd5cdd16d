package store_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/refit-project/refit/hotupdate/payload"
	"github.com/refit-project/refit/hotupdate/store"
)

// The program may replace files that the sidecar reads in the folder. Reading them never takes more than a few times their
// size of the sidecar's memory, whose limit is 64 MiB.
func TestWhatIsReadOfTheFolderTakesBoundedMemory(t *testing.T) { //nolint:paralleltest // allocations of others would count
	dir := t.TempDir()
	s := open(t, dir)
	r := seal(t, s, map[string]string{"a": "1"})
	at := filepath.Join(dir, filepath.Dir(store.FilesPath(r.ID)), "manifest.json")
	many := func(begin, one, end string, size int) string {
		return begin + strings.Repeat(one, (size-len(begin)-len(end))/len(one)) + end
	}
	long := fmt.Sprintf(`{"name":"%s"},`, strings.Repeat("x", 60))
	for name, text := range map[string]string{
		"empty files":        many(`{"files":[`, "{},", `{}]}`, 16<<20),
		"empty files of 8 M": many(`{"files":[`, "{},", `{}]}`, 8<<20-1),
		"no files":           many(`{"files":[`, "null,", `{}]}`, 8<<20-1),
		"numbers":            many(`{"files":[`, "1,", `1]}`, 8<<20-1),
		"short files":        many(`{"files":[`, long, `{}]}`, 8<<20-1),
		"empty sources":      many(`{"sources":[`, "{},", `{}]}`, 8<<20-1),
		"short sources":      many(`{"sources":[`, long, `{}]}`, 8<<20-1),
		"requested sources":  many(`{"requested":{"sources":[`, "{},", `{}]}}`, 8<<20-1),
		"hidden files":       many(`{"requested":{"hidden":[`, "{},", `{}]}}`, 8<<20-1),
	} {
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		took := allocated(func() {
			if _, err := s.Revision(r.ID); !errors.Is(err, store.ErrTampered) {
				t.Errorf("%s: %v, want ErrTampered", name, err)
			}
		})
		t.Logf("manifest of %s: %d MiB were allocated", name, took>>20)
		if took > 40<<20 {
			t.Errorf("manifest of %s: %d MiB were allocated", name, took>>20)
		}
	}
	var keys strings.Builder
	for n := 0; keys.Len() < 2<<20-200; n++ {
		fmt.Fprintf(&keys, `"%d":"",`, n)
	}
	for name, text := range map[string]string{
		"revisions":     many(`{"current":"`+r.ID+`","accepted":["`+r.ID+`"`, `,""`, `]}`, 16<<20),
		"few revisions": many(`{"current":"`+r.ID+`","accepted":["`+r.ID+`"`, `,""`, `]}`, 2<<20-1),
		"files":         `{"current":"` + r.ID + `","accepted":["` + r.ID + `"],"delivered":{"a":{"files":{` + keys.String() + `"a":""}}}}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, "..refit/state.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		took := allocated(func() {
			if _, damaged, err := s.Load(); err != nil || !damaged {
				t.Errorf("state of %s: damaged %t, %v", name, damaged, err)
			}
		})
		t.Logf("state of %s: %d MiB were allocated", name, took>>20)
		if took > 16<<20 {
			t.Errorf("state of %s: %d MiB were allocated", name, took>>20)
		}
	}
}

func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A state that could not be read back is not written.
func TestAStateThatIsTooLargeIsNotWritten(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	r := seal(t, s, map[string]string{"a": "1"})
	good := store.State{Current: r.ID, Accepted: []string{r.ID}}
	if err := s.Save(good); err != nil {
		t.Fatal(err)
	}
	for name, files := range map[string]map[string]string{"many": {}, "long": {"a": strings.Repeat("x", 2<<20)}} {
		for n := range 10_001 * (1 - len(files)) {
			files[fmt.Sprint(n)] = "x"
		}
		large := good
		large.Delivered = map[string]store.Delivery{"config": {Files: files}}
		if err := s.Save(large); !errors.Is(err, payload.ErrTooLarge) {
			t.Errorf("%s files: %v, want that it is too large", name, err)
		}
	}
	if st, damaged, err := s.Load(); damaged || err != nil || st.Current != r.ID {
		t.Errorf("%+v, damaged %t, %v", st, damaged, err)
	}
}

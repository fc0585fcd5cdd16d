package hotupdate_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/test/kit/poll"
)

// Atomic apply: readers in a loop during 200 updates never see a partial or mixed set or no files.
func TestAtomicApplyTearsNoRead(t *testing.T) {
	t.Parallel()
	const size = 20_000
	updates := int64(200)
	if testing.Short() {
		updates = 20
	}
	set := func(n int) files {
		s := strings.Repeat(string(rune('a'+n%26)), size)
		return files{"index.html": s, "conf/app.json": s}
	}
	// A reader that is not scheduled for five updates can find its revision removed; on a disk in memory that is 25 ms.
	b := newBench(t, set(0), func(c *hotupdate.Config) { c.Keep = 100 })
	var reads, torn, pairs atomic.Int64
	var readers sync.WaitGroup
	stop := make(chan struct{})
	loop := func(read func() error) {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				reads.Add(1)
				if err := read(); err != nil && torn.Add(1) < 5 {
					t.Errorf("read %d: %v", reads.Load(), err)
				}
			}
		})
	}
	whole := func(text []byte, err error) error {
		if err == nil && (len(text) != size || strings.Trim(string(text), string(text[:1])) != "") {
			err = fmt.Errorf("%d bytes from %q", len(text), text[:min(1, len(text))])
		}
		return err
	}
	for name := range set(0) {
		loop(func() error { return whole(os.ReadFile(filepath.Join(b.dir, name))) })
	}
	// A reader that needs several files of one revision opens the folder behind the link once.
	loop(func() error {
		root, err := os.OpenRoot(filepath.Join(b.dir, "..data"))
		if errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err != nil {
			return err
		}
		defer func() { _ = root.Close() }()
		one, err := readFirst(root, "index.html")
		two, err2 := readFirst(root, "conf/app.json")
		switch err := errors.Join(err, err2); {
		case errors.Is(err, os.ErrNotExist): // a revision that was removed since, or the empty one of the beginning
			return nil
		case err != nil:
			return err
		case one != two:
			return fmt.Errorf("%c beside %c", one, two)
		}
		pairs.Add(1)
		return nil
	})
	for n := 1; n <= int(updates); n++ {
		b.apply(t, inline(fmt.Sprintf("v%d", n), set(n)))
	}
	// A few updates may be over before every reader has run.
	poll.Until(t, "readers have read", func() bool { return reads.Load() >= updates && pairs.Load() >= updates })
	close(stop)
	readers.Wait()
	t.Logf("%d updates, %d reads, %d of two files, %d torn", updates, reads.Load(), pairs.Load(), torn.Load())
	if torn.Load() > 0 {
		t.Errorf("%d torn of %d reads, %d of two files", torn.Load(), reads.Load(), pairs.Load())
	}
}

func readFirst(root *os.Root, name string) (byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	b := make([]byte, 1)
	_, err = io.ReadFull(f, b)
	return b[0], err
}

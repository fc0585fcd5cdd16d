package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// The files of a set, which are put in place together.
var setFiles = []string{"a.txt", "b.txt"}

const (
	// fillSize of a file is more than what is written or read at once.
	fillSize = 200 << 10
	// lookInterval is between looks at the files.
	lookInterval = 5 * time.Millisecond
	// poison in a version makes the application go on with what it has.
	poison = "poison"
)

var (
	errTorn  = errors.New("torn")
	errMixed = errors.New("files of two versions")
)

// content of a file of a version. What is missing in it, or is of another version, shows.
func content(version string) []byte {
	head, tail := []byte("BEGIN "+version+"\n"), []byte("END "+version+"\n")
	fill := bytes.Repeat([]byte(version+" "), fillSize/(len(version)+1))
	return append(append(append(head, fill...), '\n'), tail...)
}

// versionOf is the version of a whole file.
func versionOf(text []byte) (string, error) {
	head, _, _ := bytes.Cut(text, []byte("\n"))
	version, ok := strings.CutPrefix(string(head), "BEGIN ")
	if !ok || !bytes.Equal(text, content(version)) {
		return "", fmt.Errorf("%w: %d bytes that begin with %q", errTorn, len(text), head[:min(len(head), 20)])
	}
	return version, nil
}

// readSet is the version of the set in a folder; empty when there is none yet. A reader that opens one file after the
// other may see a set change in between, but not a set that stays mixed.
func readSet(folder string) (string, error) {
	for range 3 {
		versions := map[string]bool{}
		last := ""
		for _, name := range append(setFiles[:len(setFiles):len(setFiles)], setFiles[0]) {
			text, err := os.ReadFile(filepath.Join(folder, name))
			if errors.Is(err, fs.ErrNotExist) {
				text, err = content(""), nil
			}
			if err != nil {
				return "", err
			}
			if last, err = versionOf(text); err != nil {
				return "", err
			}
			versions[last] = true
		}
		if len(versions) == 1 {
			return last, nil
		}
	}
	return "", errMixed
}

// follower watches a set of files, as a program that reads them again and again does, and loads it when it is told to.
type follower struct {
	folder  string
	journal *journal

	mu     sync.Mutex
	loaded string
}

// follow looks at the files until stop is called. Each change is an event.
func (f *follower) follow(broken chan<- error) (stop func()) {
	end := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		ticker := time.NewTicker(lookInterval)
		defer ticker.Stop()
		seen := "nothing yet"
		for {
			version, err := readSet(f.folder)
			event, text := eventFile, version
			if err != nil {
				event, text = eventTorn, err.Error()
			}
			if event+text != seen {
				seen = event + text
				if err := f.journal.add(line{Event: event, Text: text}); err != nil {
					report(broken, err)
					return
				}
			}
			select {
			case <-ticker.C:
			case <-end:
				return
			}
		}
	})
	return func() { close(end); work.Wait() }
}

// load takes the files over, except a version that it does not understand.
func (f *follower) load() error {
	version, err := readSet(f.folder)
	if err != nil {
		return f.journal.add(line{Event: eventTorn, Text: err.Error()})
	}
	if strings.Contains(version, poison) {
		return f.journal.add(line{Event: eventNote, Text: "does not understand " + version})
	}
	f.mu.Lock()
	f.loaded = version
	f.mu.Unlock()
	return f.journal.add(line{Event: eventLoaded, Text: version})
}

// serveVersion is GET /version.
func (f *follower) serveVersion(w http.ResponseWriter, _ *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fmt.Fprint(w, f.loaded)
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func putSet(t *testing.T, folder string, versions ...string) {
	t.Helper()
	for n, name := range setFiles {
		if err := os.WriteFile(filepath.Join(folder, name), content(versions[n%len(versions)]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSetsAreWholeAndOfOneVersion(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if version, err := readSet(folder); version != "" || err != nil {
		t.Errorf("nothing yet: %q, %v", version, err)
	}
	putSet(t, folder, "v1")
	if version, err := readSet(folder); version != "v1" || err != nil {
		t.Errorf("version %q, %v", version, err)
	}
	putSet(t, folder, "v1", "v2")
	if _, err := readSet(folder); !errors.Is(err, errMixed) {
		t.Errorf("mixed: %v", err)
	}
	for name, text := range map[string][]byte{"empty": nil, "half": content("v1")[:fillSize/2], "two": append(content("v1"), content("v1")...)} {
		if err := os.WriteFile(filepath.Join(folder, setFiles[0]), text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readSet(folder); !errors.Is(err, errTorn) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFollowerLoadsValidFilesAfterASignal(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	putSet(t, folder, "v1")
	out := &pipe{lines: make(chan line, 20)}
	signals, ended := make(chan os.Signal, 1), make(chan int)
	go func() {
		ended <- run([]string{"--files", folder}, func(string) string { return "" }, out, signals)
	}()
	await := func(event, text string) {
		t.Helper()
		for l := range out.lines {
			if l.Event == event && l.Text == text {
				return
			}
		}
	}
	await(eventLoaded, "v1")
	await(eventFile, "v1")
	putSet(t, folder, "v2-poison")
	await(eventFile, "v2-poison")
	signals <- syscall.SIGHUP
	await(eventNote, "does not understand v2-poison")
	signals <- syscall.SIGTERM
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestUpdatesAreOfferedInEveryKind has a sidecar that downloads everything and accepts what comes.
func TestUpdatesAreOfferedInEveryKind(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	kinds := map[string]bool{}
	ctx, enough := context.WithCancel(t.Context())
	source := httptest.NewServer(http.HandlerFunc(serveSource))
	t.Cleanup(source.Close)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Version string
			Files   []struct{ URL, SHA256 string }
		}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			t.Error(err)
			return
		}
		last := request.Files[len(request.Files)-1]
		kind := request.Version[strings.LastIndexByte(request.Version, '-')+1:]
		if kind != updateSlow {
			whole := download(r.Context(), t, last.URL, request.Version)
			if want := kind == updateGood || kind == updatePoison || kind == updateDigest; whole != want {
				t.Errorf("%s: whole: %v", request.Version, whole)
			}
		}
		if (kind == updateDigest) != (last.SHA256 != "") {
			t.Errorf("%s: digest %q", request.Version, last.SHA256)
		}
		mu.Lock()
		defer mu.Unlock()
		if kinds[kind] = true; len(kinds) == 7 {
			enough()
		}
	}))
	t.Cleanup(api.Close)
	out := &pipe{lines: make(chan line, 10_000)}
	j, err := newJournal(func(string) string { return "" }, out)
	if err != nil {
		t.Fatal(err)
	}
	if err := sendUpdates(ctx, updatesConfig{api: api.URL, seed: 1}, source.URL, j); err != nil {
		t.Fatal(err)
	}
	if asked, answered := <-out.lines, <-out.lines; asked.Event != eventUpdate || answered.Event != eventUpdated || answered.Text != asked.Text+" 200" {
		t.Errorf("%+v, %+v", asked, answered)
	}
}

// download reports whether all of a file was there.
func download(ctx context.Context, t *testing.T, url, version string) bool {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Error(err)
		return false
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return err == nil && answer.StatusCode == http.StatusOK && bytes.Equal(text, content(version))
}

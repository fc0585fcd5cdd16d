package inpod_test

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// strict serves a file to clients that send a token, and records the requests.
type strict struct {
	mu    sync.Mutex
	token string
	to    string // where "/moved" leads
	seen  []http.Header
}

func (s *strict) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, r.Header.Clone())
	switch {
	case r.URL.Path == "/moved":
		http.Redirect(w, r, s.to, http.StatusFound)
	case s.token != "" && r.Header.Get("X-Token") != s.token:
		http.Error(w, "who are you", http.StatusUnauthorized)
	default:
		fmt.Fprint(w, "content")
	}
}

func (s *strict) with(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}

func (s *strict) last() http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[len(s.seen)-1]
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestConfiguredHeadersAreSentWithDownloads(t *testing.T) {
	t.Parallel()
	origin := &strict{token: "first"}
	server := httptest.NewServer(origin)
	t.Cleanup(server.Close)
	file := write(t, "token", "first\n")
	s := newStage(t)
	s.fetch = "fetch: {attempts: 1, allowNetworks: [127.0.0.0/8], allowHosts: [127.0.0.1], headers: {X-Team: game}, headerFiles: {X-Token: " + file + "}}"
	s.run(none)
	if code, said := s.post("v1", server.URL+"/a"); code != http.StatusOK || origin.last().Get("X-Team") != "game" {
		t.Fatalf("%d %s, sent %v", code, said, origin.last())
	}

	origin.with("renewed")
	if code, said := s.post("v2", server.URL+"/a"); code == http.StatusOK || strings.Contains(said, "first") {
		t.Errorf("with the old token: %d %s", code, said)
	}
	if err := os.WriteFile(file, []byte("renewed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, said := s.post("v3", server.URL+"/a"); code != http.StatusOK {
		t.Errorf("after the file was renewed: %d %s", code, said)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if code, said := s.post("v4", server.URL+"/a"); code == http.StatusOK || !strings.Contains(said, "X-Token") {
		t.Errorf("without the file: %d %s", code, said)
	}
}

func TestConfiguredHeadersDoNotFollowARedirectToAnotherHost(t *testing.T) {
	t.Parallel()
	other := &strict{}
	elsewhere := httptest.NewServer(other)
	t.Cleanup(elsewhere.Close)
	origin := &strict{to: elsewhere.URL + "/a"}
	server := httptest.NewServer(origin)
	t.Cleanup(server.Close)
	s := newStage(t)
	s.fetch = "fetch: {attempts: 1, allowNetworks: [127.0.0.0/8], allowHosts: [127.0.0.1], headers: {X-Token: secret}}"
	s.run(none)
	s.mustPost("v1", server.URL+"/moved")
	if origin.last().Get("X-Token") != "secret" || other.last().Get("X-Token") != "" {
		t.Errorf("sent to the source %v, and to where it redirects %v", origin.last(), other.last())
	}
}

func TestHeadersWithoutAListOfHostsAreRefused(t *testing.T) {
	t.Parallel()
	for fetch, want := range map[string]string{
		"{headers: {X-Token: a}}": "need allowHosts",
		"{allowHosts: [a.example], headers: {X-Token: a}, headerFiles: {X-Token: /b}}": "given in headers and headerFiles",
	} {
		if _, err := newStage(t).read(none + "\nfetch: " + fetch); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", fetch, err, want)
		}
	}
}

func TestCAFileReplacesTheCertificatesOfTheSystem(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(&strict{})
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	own := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	file := write(t, "ca.pem", "not yet")
	s := newStage(t)
	s.fetch = "fetch: {attempts: 1, allowNetworks: [127.0.0.0/8], caFile: " + file + "}"
	s.run(none)
	if code, said := s.post("v1", server.URL+"/a"); code == http.StatusOK || !strings.Contains(said, "no certificates") {
		t.Errorf("with a file that holds none: %d %s", code, said)
	}
	if err := os.WriteFile(file, []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, said := s.post("v2", server.URL+"/a"); code != http.StatusOK {
		t.Errorf("with the certificate: %d %s", code, said)
	}
	without := newStage(t).run(none)
	if code, said := without.post("v1", server.URL+"/a"); code == http.StatusOK || !strings.Contains(said, "certificate") {
		t.Errorf("without caFile: %d %s", code, said)
	}
}

func TestModeOfAFormIsTheFilesMode(t *testing.T) {
	t.Parallel()
	s := newStage(t).run(none)
	address := s.origin.put("/run.sh", "#!/bin/sh")
	for mode, want := range map[string]os.FileMode{"0750": 0o750, "640": 0o640} {
		if code, said := s.post("v1."+strings.TrimLeft(mode, "0"), address, "mode", mode); code != http.StatusOK {
			t.Fatalf("mode %s: %d %s", mode, code, said)
		}
		info, err := os.Stat(filepath.Join(s.dir, "run.sh"))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("mode %s: %v, %v", mode, info, err)
		}
	}
	for _, mode := range []string{"0888", "rwxr-x---", "07777", "-1", "0x1ff"} {
		if code, said := s.post("v2", address, "mode", mode); code != http.StatusBadRequest || !strings.Contains(said, "octal") {
			t.Errorf("mode %s: %d %s", mode, code, said)
		}
	}
}

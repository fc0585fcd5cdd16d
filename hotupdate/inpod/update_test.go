package inpod_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/refit-project/refit/signal"
)

const none = "loadPatchType: none\n"

// The messages and status codes of the reference implementation for a valid and an invalid request.
func TestHotUpdateInterface(t *testing.T) {
	t.Parallel()
	s := newStage(t).run(none)
	file := s.origin.put("/v1/index.html", "one")
	tests := []struct {
		name, method, version, url string
		code                       int
		said                       string
	}{
		{"GET", http.MethodGet, "v1", file, 405, "only POST requests are allowed"},
		{"no version", http.MethodPost, "", file, 400, "please provide a valid version"},
		{"bad version", http.MethodPost, "1.2", file, 400, "please provide a valid version"},
		{"no URL", http.MethodPost, "v1", "", 400, "please provide a valid URL"},
		{"name is no file name", http.MethodPost, "v1", s.origin.URL + "/v1/", 400, "invalid request"},
		{"a page of 404", http.MethodPost, "v1", s.origin.URL + "/none.html", 500, "failed to download file: "},
		{"the metadata service", http.MethodPost, "v1", "http://169.254.169.254/latest/meta-data", 500, "failed to download file: "},
		{"good", http.MethodPost, "v1", file, 200, "File downloaded and update successfully"},
		{"again", http.MethodPost, "v1", file, 200, "File downloaded and update successfully"},
		{"four parts, zeros", http.MethodPost, "v1.02.3.4", file, 200, "File downloaded and update successfully"},
	}
	for _, tt := range tests {
		r := httptest.NewRequest(tt.method, "/hot-update?version="+tt.version+"&url="+tt.url, http.NoBody)
		code, said := s.do(r)
		if code != tt.code || !strings.HasPrefix(said, tt.said) {
			t.Errorf("%s: %d %q, want %d %q", tt.name, code, said, tt.code, tt.said)
		}
	}
	s.check("index.html", "one")
	if got := s.results.value("hot_update"); got != "v1.02.3.4: Update success" {
		t.Errorf("annotation %q", got)
	}
	var detail map[string]any
	if err := json.Unmarshal([]byte(s.results.value("hot_update/detail")), &detail); err != nil || detail["version"] != "v1.02.3.4" || detail["phase"] != "Accepted" {
		t.Errorf("detail %v %v", detail, err)
	}
}

func TestJSONRequests(t *testing.T) {
	t.Parallel()
	s := newStage(t).run(none)
	s.origin.put("/a", "A")
	sum := sha256.Sum256([]byte("A"))
	code, answer := s.postJSON("/hot-update", `{"version":"r1","files":[{"url":"ORIGIN/a","name":"x/a","sha256":"`+hex.EncodeToString(sum[:])+`"},{"data":"Qg==","name":"b"}]}`)
	if code != 200 || answer["changed"] != true {
		t.Fatalf("%d %v", code, answer)
	}
	s.check("x/a", "A")
	s.check("b", "B")
	code, answer = s.postJSON("/hot-update", `{"version":"r2","url":"ORIGIN/a","name":"c","sha256":"`+strings.Repeat("00", 32)+`"}`)
	if code != 500 || !strings.Contains(fmt.Sprint(answer["error"]), "digest") || answer["phase"] != "Fetching" {
		t.Errorf("wrong digest: %d %v", code, answer)
	}
	if code, _ = s.postJSON("/hot-update?dryRun", `{"version":"r3","url":"ORIGIN/a","name":"c"}`); code != 200 || s.content("c") != "none" {
		t.Errorf("dry run: %d, c holds %s", code, s.content("c"))
	}
	if code, _ = s.postJSON("/hot-update", `{"version":"r4","url":"ORIGIN/a","name":"c","keep":false}`); code != 200 || s.content("b") != "none" || s.content("c") != "A" {
		t.Errorf("without keep: %d, b holds %s, c %s", code, s.content("b"), s.content("c"))
	}
	for _, bad := range []string{`{`, `{"version":"r","nonsense":1}`, `{"version":"r"}`, `{"url":"ORIGIN/a"}`, `{"version":"r","files":[{}]}`, `{"version":"r","url":"ORIGIN/a"} {}`} {
		if code, answer := s.postJSON("/hot-update", bad); code != 400 {
			t.Errorf("%s: %d %v", bad, code, answer)
		}
	}
}

// A failed reload fails the update, and the stored outcome belongs to this update.
func TestAFailedReloadIsNoSuccess(t *testing.T) {
	t.Parallel()
	var fail atomic.Bool
	var told atomic.Int32
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		told.Add(1)
		if fail.Load() {
			http.Error(w, "syntax error in line 3", http.StatusInternalServerError)
		}
	}))
	defer app.Close()
	host, port, _ := strings.Cut(strings.TrimPrefix(app.URL, "http://"), ":")
	s := newStage(t).run("loadPatchType: request\nrequest: {address: " + host + ", port: " + port + "}\n")
	s.accept("v1", "/conf", "good")
	if told.Load() != 1 {
		t.Errorf("the program was told %d times", told.Load())
	}
	fail.Store(true)
	code, said := s.post("v2", s.origin.put("/conf", "bad"))
	if code < 500 || !strings.Contains(said, "syntax error in line 3") {
		t.Errorf("%d %s", code, said)
	}
	s.check("conf", "good")
	if got := s.results.value("hot_update"); !strings.HasPrefix(got, "v2: Update failed: ") || !strings.Contains(got, "syntax error in line 3") {
		t.Errorf("annotation %q", got)
	}
	s.remembered("v1")
	metric := s.results.value("hot_update/detail")
	if !strings.Contains(metric, `"rolledBack":true`) && !strings.Contains(metric, `"phase":"Failed"`) {
		t.Errorf("detail %s", metric)
	}
}

// Several reload actions run in the order of the configuration; the first failure ends the chain.
func TestReloadChain(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	diary := filepath.Join(t.TempDir(), "diary")
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := os.ReadFile(diary)
		if err := os.WriteFile(diary, append(b, r.Method+" "+r.URL.Path+" "+r.Header.Get("X-Key")+"\n"...), 0o600); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(app.Close)
	s.run("loadPatchType: request\nrequest: {url: '" + app.URL + "/first', method: PUT, headers: {x-key: k}, expectedStatusCode: 202}\n" +
		"reload:\n- exec: [/bin/sh, -c, 'echo exec {version} $(cat {path}/f) >>" + diary + "']\n- touch: f\n- request: {url: '" + app.URL + "/last'}\n")
	s.accept("v1", "/f", "one")
	if b, err := os.ReadFile(diary); err != nil || string(b) != "PUT /first k\nexec v1 one\nPOST /last \n" {
		t.Errorf("%s %v", b, err)
	}
	app.Close()
	code, said := s.post("v2", s.origin.put("/f", "two"))
	if code < 500 || !strings.Contains(said, "request PUT") {
		t.Errorf("%d %s", code, said)
	}
	s.check("f", "one")
	if b, _ := os.ReadFile(diary); strings.Contains(string(b), "v2") {
		t.Errorf("the chain went on: %s", b)
	}
}

// The configuration decides what may be fetched; loopback has to be allowed explicitly.
func TestFetchIsLimitedByTheConfiguration(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ fetch, want string }{
		"loopback by default":  {"fetch: {attempts: 1}", "is this pod itself"},
		"another network":      {"fetch: {attempts: 1, allowNetworks: [10.0.0.0/8]}", "is not in an allowed network"},
		"another host":         {"fetch: {attempts: 1, allowNetworks: [127.0.0.0/8], allowHosts: ['*.example.org']}", "is not on the list"},
		"a size":               {"fetch: {attempts: 1, allowNetworks: [127.0.0.0/8], maxSize: 1Ki}", "too large"},
		"a metadata address":   {"fetch: {attempts: 1, allowNetworks: [0.0.0.0/0]}", ""},
		"all of it is allowed": {"fetch: {attempts: 1, allowNetworks: [127.0.0.0/8], allowHosts: [127.0.0.1], maxSize: 1Mi}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.fetch = tt.fetch
			s.run(none)
			code, said := s.post("v1", s.origin.put("/f", strings.Repeat("x", 2048)))
			if (code == http.StatusOK) != (tt.want == "") || !strings.Contains(said, tt.want) {
				t.Errorf("%d %s", code, said)
			}
			if code, said := s.post("v2", "http://169.254.169.254/token"); code != http.StatusInternalServerError {
				t.Errorf("the metadata service: %d %s", code, said)
			}
		})
	}
}

// Two concurrent updates do not mix: one is done, the other is refused with Retry-After.
func TestOneUpdateAtATime(t *testing.T) {
	t.Parallel()
	s := newStage(t).run(none)
	s.origin.put("/f", "one")
	s.origin.mu.Lock()
	s.origin.block = make(chan struct{})
	s.origin.mu.Unlock()
	var first int
	var wg sync.WaitGroup
	wg.Go(func() { first, _ = s.post("v1", s.origin.URL+"/f") })
	s.until("asked", func() bool { s.origin.mu.Lock(); defer s.origin.mu.Unlock(); return s.origin.asked > 0 })
	if code, said := s.post("v2", s.origin.URL+"/g"); code != http.StatusConflict {
		t.Errorf("%d %s", code, said)
	}
	close(s.origin.block)
	wg.Wait()
	if first != 200 {
		t.Errorf("the first: %d", first)
	}
	s.check("f", "one")
	s.check("g", "none")
}

// A caller that hangs up does not stop the update.
func TestCallerThatHangsUp(t *testing.T) {
	t.Parallel()
	s := newStage(t).run(none)
	s.origin.put("/f", "one")
	block := make(chan struct{})
	s.origin.mu.Lock()
	s.origin.block = block
	s.origin.mu.Unlock()
	ctx, cancel := newContext(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		r := httptest.NewRequest(http.MethodPost, "/hot-update?version=v1&url="+s.origin.URL+"/f", http.NoBody).WithContext(ctx)
		s.do(r)
	})
	s.until("asked", func() bool { s.origin.mu.Lock(); defer s.origin.mu.Unlock(); return s.origin.asked > 0 })
	cancel()
	wg.Wait()
	close(block)
	s.until("there", func() bool { return s.content("f") == "one" })
}

// The signal goes only to the selected process, by its title.
func TestSignalReachesTheProcess(t *testing.T) {
	t.Parallel()
	fs, err := signal.New("/proc")
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(t)
	s.fs = fs
	title := "refit-test: master process of " + filepath.Base(s.dir)
	app := exec.CommandContext(t.Context(), "/usr/bin/sleep", "600")
	app.Args[0] = title
	if err := app.Start(); err != nil {
		t.Fatal(err)
	}
	s.run("loadPatchType: signal\nsignal: {processName: '" + title + "', signalName: SIGTERM}\n")
	s.accept("v1", "/f", "one")
	var exit *exec.ExitError
	if err := app.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("the process ended with %v", err)
	}
	code, said := s.post("v2", s.origin.put("/f", "two"))
	if code < 500 || !strings.Contains(said, "no such process") {
		t.Errorf("without the process: %d %s", code, said)
	}
	s.check("f", "one")
}

func TestConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	tests := map[string]string{
		"":                                "loadPatchType or reload",
		"loadPatchType: kill":             "want one of signal, request, none",
		"loadPatchType: signal":           "needs signal",
		"loadPatchType: request":          "needs request",
		none + "fileDir: relative":        `fileDir "relative": not an absolute path`,
		none + "keepRevisions: 1":         "keepRevisions 1: want 2 or more",
		none + "maxFiles: -1":             "maxFiles -1",
		none + "reload: [{}]":             "exactly one of signal",
		none + "triggers: [{}]":           "exactly one of configMap",
		none + "detailAnnotationKey: '/'": "annotation",
		none + "fetch: {maxSize: much, allowNetworks: [x]}":                     "maxSize",
		none + "storageConfig: {inKube: {conditionType: Ready}}":                "written by kubelet or a controller",
		none + "verify: {checks: [{}]}":                                         "verify.checks[0]",
		"loadPatchType: signal\nsignal: {processName: x, signalName: SIGNONE}":  `signal: signalName: signal "SIGNONE": unknown name`,
		"loadPatchType: signal\nsignal: {processName: '', signalName: SIGTERM}": "signal: ",
		none + "reload: [{signal: {processName: x, signalName: SIGNONE}}]":      "reload[0]: signalName",
		"loadPatchType: request\nrequest: {address: '', port: 1}":               "url, or address and port",
		none + "restore: {waitSeconds: soon}":                                   "wrong type",
	}
	for text, want := range tests {
		if _, err := s.read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v lacks %q", text, err, want)
		}
	}
	if _, err := s.read("fileDir: /app/downloads\nloadPatchType: signal\nsignal: {processName: 'nginx: master process nginx', signalName: SIGHUP}\nbootOrder: 1\n" +
		"storageConfig:\n  inKube: {annotationKey: sidecar.vke.volcengine.com/hot-update-result}\n  type: InKube\n"); err != nil {
		t.Errorf("the KEP's: %v", err)
	}
}

package inpod_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// With keys in the configuration a request has to be signed, and a restore too, because a user who may write the record may
// not be allowed to sign.
func TestIntegrityUnsignedIsRefused(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	sum := sha256.Sum256([]byte("one"))
	signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	encoded := base64.StdEncoding.EncodeToString(signature)
	keyed := fetchLocal[:len(fetchLocal)-1] + ", publicKeys: [" + strconv.Quote(text) + "]}"
	s := newStage(t)
	s.fetch = keyed
	s.run(none)
	file := s.origin.put("/f", "one")
	if code, said := s.post("v1", file); code != http.StatusInternalServerError || !strings.Contains(said, "signature: none is given") {
		t.Errorf("unsigned: %d %s", code, said)
	}
	if code, said := s.post("v1", file, "signature", "?"); code != http.StatusBadRequest {
		t.Errorf("no base64: %d %s", code, said)
	}
	if code, answer := s.postJSON("/hot-update", `{"version":"v1","data":"b25l","name":"f"}`); code != http.StatusInternalServerError {
		t.Errorf("content with the request: %d %v", code, answer)
	}
	s.check("f", "none")
	if code, said := s.post("v1", file, "signature", encoded); code != http.StatusOK {
		t.Errorf("signed: %d %s", code, said)
	}
	if code, answer := s.postJSON("/hot-update", `{"version":"v2","url":"ORIGIN/f","name":"g","signature":"`+encoded+`"}`); code != http.StatusOK {
		t.Errorf("signed, as JSON: %d %v", code, answer)
	}
	s.remembered("v2")
	n := s.newPod("web-abc-2")
	n.fetch = keyed
	n.run(none)
	n.check("g", "one")
	n.api.set(func(a *apiServer) {
		a.configMaps["sidecar-result"]["Deployment.web"] = `{"uid":"d1","current":"d","revisions":[{"version":"v9","digest":"d","sources":[{"url":"` + file + `","name":"f"}]}]}`
	})
	forged := n.newPod("web-abc-3")
	forged.fetch = keyed
	forged.run(none)
	forged.check("f", "none")
	if _, err := s.read("fetch: {publicKeys: [x]}\n" + none); err == nil || !strings.Contains(err.Error(), "fetch.publicKeys[0]") {
		t.Errorf("configuration: %v", err)
	}
}

func TestVerifyRollsBack(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.run(none + "verify: {checks: [{file: {path: DIR/conf, content: 'version={version}'}}]}\n")
	s.accept("v1", "/conf", "version=v1")
	if code, said := s.post("v2", s.origin.put("/conf", "version=other")); code < 500 {
		t.Errorf("%d %s", code, said)
	}
	s.check("conf", "version=v1")
}

func TestPrecheckRefuses(t *testing.T) {
	t.Parallel()
	s := newStage(t).run(none + "precheck: [{exec: [/usr/bin/grep, -q, good, '{path}/conf']}]\n")
	s.accept("v1", "/conf", "good")
	if code, said := s.post("v2", s.origin.put("/conf", "bad")); code < 500 || !strings.Contains(said, "candidate rejected") {
		t.Errorf("%d %s", code, said)
	}
	s.check("conf", "good")
}

func TestRollbackIsWhatCounts(t *testing.T) {
	t.Parallel()
	s := newStage(t).run(none)
	s.accept("v1", "/f", "one")
	s.accept("v2", "/f", "two")
	if code, answer := s.postJSON("/rollback", `{"version":"v1"}`); code != 200 {
		t.Fatalf("%d %v", code, answer)
	}
	s.check("f", "one")
	s.remembered("v1")
	if code, _ := s.postJSON("/rollback", `{"version":"v9"}`); code != 404 {
		t.Errorf("unknown version: %d", code)
	}
	code, text := s.do(httptest.NewRequest(http.MethodGet, "/revisions", http.NoBody))
	var shown []map[string]any
	if err := json.Unmarshal([]byte(text), &shown); err != nil || code != 200 || len(shown) < 2 || shown[0]["version"] != "v1" {
		t.Errorf("%d %s", code, text)
	}
	if code, _ := s.do(httptest.NewRequest(http.MethodGet, "/rollback", http.NoBody)); code != 405 {
		t.Errorf("GET: %d", code)
	}
	// A new pod gets v1 again, not the highest.
	s.origin.put("/f", "one")
	n := s.newPod("web-abc-2").run(none)
	n.check("f", "one")
	if got := n.results.value("hot_update"); got != "v1: Update success" {
		t.Errorf("annotation of the new pod %q", got)
	}
}

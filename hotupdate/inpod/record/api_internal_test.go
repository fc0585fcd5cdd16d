package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kube/ownpod"
)

const (
	podPath = "pods games/web-5d4f-x"
	setPath = "replicasets games/web-5d4f"
	mapPath = "configmaps games/c"
)

// server is an API server with objects by their path, and with errors by method and path.
type server struct {
	objects map[string]string
	fails   map[string]error
	calls   []string
	created string
	// faster creates the object before ours.
	faster bool
}

func (s *server) call(method string, ref ownpod.Reference) (string, error) {
	path := ref.Resource + " " + ref.Namespace + "/" + ref.Name
	s.calls = append(s.calls, method+" "+path)
	return path, s.fails[method+" "+path]
}

func (s *server) Get(_ context.Context, ref ownpod.Reference) ([]byte, error) {
	path, err := s.call("get", ref)
	if text, ok := s.objects[path]; ok || err != nil {
		return []byte(text), err
	}
	return nil, ownpod.ErrNotFound
}

func (s *server) Patch(_ context.Context, ref ownpod.Reference, mediaType string, body []byte) ([]byte, error) {
	path, err := s.call("patch", ref)
	if err != nil {
		return nil, err
	}
	text, ok := s.objects[path]
	if !ok {
		return nil, ownpod.ErrNotFound
	}
	var stored, patch corev1.ConfigMap
	if mediaType != "application/merge-patch+json" {
		return nil, fmt.Errorf("patch of type %s", mediaType)
	}
	if err := errors.Join(json.Unmarshal([]byte(text), &stored), json.Unmarshal(body, &patch)); err != nil {
		return nil, err
	}
	if stored.Data == nil {
		stored.Data = map[string]string{}
	}
	maps.Copy(stored.Data, patch.Data)
	b, err := json.Marshal(stored)
	s.objects[path] = string(b)
	return b, err
}

func (s *server) Create(_ context.Context, ref ownpod.Reference, body []byte) ([]byte, error) {
	path, err := s.call("create", ref)
	if err != nil {
		return nil, err
	}
	var created corev1.ConfigMap
	if err := json.Unmarshal(body, &created); err != nil {
		return nil, err
	}
	if s.faster {
		s.objects[path+created.Name] = `{"data":{"Deployment.other":"theirs"}}`
		return nil, ownpod.ErrConflict
	}
	s.created, s.objects[path+created.Name] = created.APIVersion+" "+created.Kind+" "+created.Name, string(body)
	return body, nil
}

// data of the ConfigMap.
func (s *server) data(t *testing.T) map[string]string {
	t.Helper()
	var stored corev1.ConfigMap
	if text, ok := s.objects[mapPath]; ok {
		if err := json.Unmarshal([]byte(text), &stored); err != nil {
			t.Fatal(err)
		}
	}
	return stored.Data
}

// newServer has the pod of a Deployment, and no ConfigMap yet.
func newServer() *server {
	return &server{objects: map[string]string{
		podPath: `{"metadata":{"name":"web-5d4f-x","uid":"p","ownerReferences":[{"kind":"ReplicaSet","name":"web-5d4f","uid":"r","controller":true}]}}`,
		setPath: `{"metadata":{"ownerReferences":[{"kind":"Deployment","name":"web","uid":"d","controller":true}]}}`,
	}, fails: map[string]error{}}
}

// store of a pod that has not been observed yet.
func (s *server) store() *Store {
	return New(Options{API: s, ConfigMap: "c", Pod: identity.Pod{Namespace: "games", Name: "web-5d4f-x"}, Observed: func() *corev1.Pod { return nil }})
}

// The first revision of a namespace creates the ConfigMap, also where another pod does so at the same moment.
func TestTheFirstRevisionCreatesTheConfigMap(t *testing.T) {
	t.Parallel()
	for _, faster := range []bool{false, true} {
		a := newServer()
		a.faster = faster
		if found, err := a.store().Latest(t.Context()); len(found) > 0 || err != nil {
			t.Errorf("before the first: %+v, %v", found, err)
		}
		if err := a.store().accept(t, "v1"); err != nil {
			t.Fatalf("another is faster %t: %v", faster, err)
		}
		found, err := a.store().Latest(t.Context())
		if err != nil || len(found) != 1 || found[0].Version != "v1" {
			t.Errorf("another is faster %t: a new pod begins with %+v, %v", faster, found, err)
		}
		if !slices.Contains(a.calls, "create configmaps games/") {
			t.Errorf("calls %q", a.calls)
		}
		if got := a.data(t)["Deployment.other"]; faster && got != "theirs" || !faster && a.created != "v1 ConfigMap c" {
			t.Errorf("another is faster %t: created %q, of another workload %q", faster, a.created, got)
		}
	}
}

// What stops the record from being read or written is said, by the call that failed, and nothing is written then.
func TestWhatStopsTheRecordIsSaid(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		call, object string // one fails, or one is broken
		says         string
		written      bool // only recording fails
	}{
		"pod":                  {"get " + podPath, "", "no connection", false},
		"broken pod":           {"", podPath, "decode pod: ", false},
		"replica set":          {"get " + setPath, "", "find the workload of the pod: no connection", false},
		"broken replica set":   {"", setPath, "decode ", false},
		"ConfigMap":            {"get " + mapPath, "", "no connection", false},
		"broken ConfigMap":     {"", mapPath, "decode ", false},
		"it cannot be created": {"create configmaps games/", "", "no connection", true},
		"it cannot be patched": {"patch " + mapPath, "", "no connection", true},
	} {
		a := newServer()
		if tt.call != "" {
			a.fails[tt.call] = errAway
		} else {
			a.objects[tt.object] = "{"
		}
		found, read := a.store().Latest(t.Context())
		recorded := a.store().accept(t, "v1")
		errs := []error{read, recorded}
		if tt.written {
			if read != nil || found != nil {
				t.Errorf("%s: read %v, %v", name, found, read)
			}
			errs = errs[1:]
		}
		for _, err := range errs {
			if err == nil || !strings.Contains(err.Error(), tt.says) || tt.call != "" && !errors.Is(err, errAway) {
				t.Errorf("%s: %v, want %s", name, err, tt.says)
			}
		}
		if tt.object == "" && len(a.data(t)) > 0 {
			t.Errorf("%s: recorded %v", name, a.data(t))
		}
	}
}

// A record of a workload that was deleted, and created again under its name, is not the new one's.
func TestARecordOfAnEarlierWorkloadIsReplaced(t *testing.T) {
	t.Parallel()
	a := newServer()
	if err := a.store().accept(t, "v1"); err != nil {
		t.Fatal(err)
	}
	a.objects[setPath] = strings.Replace(a.objects[setPath], `"uid":"d"`, `"uid":"e"`, 1)
	if found, err := a.store().Latest(t.Context()); len(found) > 0 || err != nil {
		t.Errorf("a new workload begins with %+v, %v", found, err)
	}
	if err := a.store().accept(t, "v2"); err != nil {
		t.Fatal(err)
	}
	if found, err := a.store().Latest(t.Context()); err != nil || len(found) != 1 || found[0].Version != "v2" {
		t.Errorf("after its first: %+v, %v", found, err)
	}
}

// Without an API server or a ConfigMap nothing is recorded, and that is no error.
func TestNothingIsRecordedWhereItIsNotConfigured(t *testing.T) {
	t.Parallel()
	a := newServer()
	for name, s := range map[string]*Store{
		"no API server": New(Options{ConfigMap: "c", Observed: func() *corev1.Pod { return nil }}),
		"no ConfigMap":  New(Options{API: a, Observed: func() *corev1.Pod { return nil }}),
	} {
		found, err := s.Latest(t.Context())
		if recorded := s.accept(t, "v1"); found != nil || err != nil || recorded != nil || len(a.calls) > 0 {
			t.Errorf("%s: %v, %v, %v, calls %q", name, found, err, recorded, a.calls)
		}
	}
}

// What the reference implementation has written for this pod is a beginning, until the workload has a record.
func TestARecordOfTheReferenceIsABeginning(t *testing.T) {
	t.Parallel()
	a := newServer()
	a.objects[mapPath] = `{"data":{"games-web-5d4f-x":"hot_update: {v9: http://o/9, v10: http://o/10}","games-other":"hot_update: {v11: http://o/11}"}}`
	found, err := a.store().Latest(t.Context())
	if err != nil || len(found) != 1 || found[0].Version != "v10" || found[0].Request().Sources[0].URL != "http://o/10" {
		t.Fatalf("found %+v, %v", found, err)
	}
	if err := a.store().accept(t, "v3"); err != nil {
		t.Fatal(err)
	}
	if found, err = a.store().Latest(t.Context()); err != nil || len(found) != 1 || found[0].Version != "v3" {
		t.Errorf("after a revision of ours: %+v, %v", found, err)
	}
}

// A revision that does not fit is refused with its version, and the record stays as it was.
func TestARevisionThatDoesNotFitLeavesTheRecord(t *testing.T) {
	t.Parallel()
	a := newServer()
	if err := a.store().accept(t, "v1"); err != nil {
		t.Fatal(err)
	}
	before := a.data(t)["Deployment.web"]
	huge := version("v2", 0)
	huge.Sources[0].URL = "http://o/" + strings.Repeat("u", 16<<10)
	err := a.store().Accepted(t.Context(), huge)
	if !errors.Is(err, hotupdate.ErrTooLarge) || !strings.Contains(err.Error(), "record v2 in ") || a.data(t)["Deployment.web"] != before {
		t.Errorf("%v, record %s", err, a.data(t)["Deployment.web"])
	}
}

// The limits of the record are of what still fits.
func TestLimitsOfTheRecord(t *testing.T) {
	t.Parallel()
	empty, err := formatRecord(record{}.accept(Revision{Digest: "d", Accepted: noon}))
	if err != nil {
		t.Fatal(err)
	}
	for more, fits := range map[int]bool{0: true, 1: false} {
		m := Revision{Digest: "d", Accepted: noon, Version: strings.Repeat("v", 16<<10-len(empty)+more)}
		text, err := formatRecord(record{}.accept(m))
		if fits != (err == nil) {
			t.Errorf("%d more: %v", more, err)
		}
		if _, err := parseRecord(text); fits && err != nil {
			t.Errorf("%d bytes cannot be read: %v", len(text), err)
		}
	}
	for length, known := range map[int]bool{2 << 10: true, 2<<10 + 1: false} {
		r := hotupdate.Revision{Version: "v", Digest: "d"}
		r.Requested.Digest, r.Requested.Sources = "set", []hotupdate.Origin{{Name: strings.Repeat("n", length)}}
		if got := NewRevision(r, time.Now()); known != (len(got.Lost) == 1) {
			t.Errorf("names of %d bytes: lost %d", length, len(got.Lost))
		}
	}
	if m, ok := parseReference("hot_update: {v1: http://o/" + strings.Repeat("u", 1<<20) + "}"); ok {
		t.Errorf("a reference's record beyond its limit is taken: %s", m.Version)
	}
}

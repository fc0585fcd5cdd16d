package record

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/hotupdate/store"
	"github.com/refit-project/refit/identity"
	"github.com/refit-project/refit/kube/ownpod"
)

var errAway = errors.New("no connection")

// records is an API server with one ConfigMap.
type records struct {
	API
	data map[string]string
	away bool
}

func (r *records) Get(context.Context, ownpod.Reference) ([]byte, error) {
	if r.away {
		return nil, errAway
	}
	return json.Marshal(corev1.ConfigMap{Data: r.data})
}

func (r *records) Patch(_ context.Context, _ ownpod.Reference, _ string, body []byte) ([]byte, error) {
	if r.away {
		return nil, errAway
	}
	return nil, json.Unmarshal(body, &struct {
		Data *map[string]string `json:"data"`
	}{&r.data})
}

// current is the version that a new pod would begin with.
func (r *records) current(t *testing.T) string {
	t.Helper()
	kept, err := parseRecord(r.data["StatefulSet.web"])
	if err != nil {
		t.Fatal(err)
	}
	m, _ := kept.current()
	return m.Version
}

// in is the record as a pod of the workload sees it.
func (r *records) in(name string) *Store {
	yes := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: "web", UID: "w", Controller: &yes}}}}
	s := New(Options{API: r, ConfigMap: "c", Pod: identity.Pod{Namespace: "games", Name: name}, Observed: func() *corev1.Pod { return pod }})
	s.Fresh()
	return s
}

// version is a request for one file, and what it led to.
func version(v string) (hotupdate.Request, hotupdate.Revision) {
	request := hotupdate.Request{Version: v, Keep: true, Sources: []hotupdate.Source{{URL: "http://o/a", Name: "a"}}}
	return request, hotupdate.Revision{Version: v, Digest: "digest-" + v, Files: []store.File{{Name: "a", SHA256: "sum-" + v}}}
}

func (s *Store) accept(t *testing.T, v string) error {
	t.Helper()
	request, accepted := version(v)
	return s.Accepted(t.Context(), request, hotupdate.Revision{}, accepted)
}

func TestWhatCouldNotBeWrittenIsWrittenByTheNextAttempt(t *testing.T) {
	t.Parallel()
	r := &records{data: map[string]string{}}
	s := r.in("web-0")
	if err := s.accept(t, "v1"); err != nil {
		t.Fatal(err)
	}
	r.away = true
	for range 2 {
		if err := s.accept(t, "v2"); !errors.Is(err, errAway) {
			t.Errorf("during the outage: %v", err)
		}
	}
	r.away = false
	if err := s.accept(t, "v2"); err != nil || r.current(t) != "v2" {
		t.Errorf("recorded %s, %v", r.current(t), err)
	}
	r.away = true
	if err := s.accept(t, "v2"); err != nil {
		t.Errorf("the same again asks the API server: %v", err)
	}
	_, first := version("v1")
	if err := s.RolledBack(t.Context(), first); !errors.Is(err, errAway) {
		t.Errorf("rolled back during the outage: %v", err)
	}
	r.away = false
	if err := s.RolledBack(t.Context(), first); err != nil || r.current(t) != "v1" {
		t.Errorf("after going back: recorded %s, %v", r.current(t), err)
	}
}

// The next attempt does not take back what another pod has accepted meanwhile.
func TestALateRecordLeavesANewerOneOfAnotherPod(t *testing.T) {
	t.Parallel()
	r := &records{data: map[string]string{}}
	s := r.in("web-0")
	r.away = true
	if err := s.accept(t, "v1"); !errors.Is(err, errAway) {
		t.Fatal(err)
	}
	r.away = false
	s.unwritten = s.unwritten.Add(-time.Minute)
	if err := r.in("web-1").accept(t, "v2"); err != nil {
		t.Fatal(err)
	}
	if err := s.accept(t, "v1"); err != nil || r.current(t) != "v2" {
		t.Errorf("recorded %s, %v", r.current(t), err)
	}
	if err := s.accept(t, "v3"); err != nil || r.current(t) != "v3" {
		t.Errorf("recorded %s, %v", r.current(t), err)
	}
}

func TestRollbackToBeforeTheFirstUpdateIsNoPartialRevision(t *testing.T) {
	t.Parallel()
	r := &records{data: map[string]string{}}
	s := r.in("web-0")
	for _, err := range []error{
		s.accept(t, "v1"),
		s.RolledBack(t.Context(), hotupdate.Revision{Version: hotupdate.InitialVersion, Digest: "d", Files: []store.File{{Name: "image", SHA256: "s"}}}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if found, ok, err := r.in("web-1").Latest(t.Context()); ok || err != nil {
		t.Errorf("a new pod would begin with %+v, %v", found, err)
	}
	if err := s.accept(t, "v2"); err != nil || r.current(t) != "v2" || strings.Contains(r.data["StatefulSet.web"], "partial") {
		t.Errorf("record %s, %v", r.data["StatefulSet.web"], err)
	}
}

package record

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/hotupdate/manifest"
	"github.com/refit-project/refit/hotupdate/store"
	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/kube/ownpod"
)

var errAway = errors.New("no connection")

// records is an API server with one ConfigMap.
type records struct {
	API
	data   map[string]string
	away   bool
	writes int
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
	r.writes++
	return nil, json.Unmarshal(body, &struct {
		Data *map[string]string `json:"data"`
	}{&r.data})
}

// current returns the version that a new pod would start with.
func (r *records) current(t *testing.T) string {
	t.Helper()
	kept, err := parseRecord(r.data["StatefulSet.web"])
	if err != nil {
		t.Fatal(err)
	}
	m, _ := kept.current()
	return m.Version
}

// in returns the record as a pod of the workload reads it.
func (r *records) in(name string) *Store {
	yes := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: "web", UID: "w", Controller: &yes}}}}
	return New(Options{API: r, ConfigMap: "c", Pod: identity.Pod{Namespace: "games", Name: name}, Observed: func() *corev1.Pod { return pod }})
}

// version returns the result of a request for one file some time ago.
func version(v string, ago time.Duration) Revision {
	r := hotupdate.Revision{
		Version: v, Digest: "digest-" + v, Files: []store.File{{Name: "a", SHA256: "sum-" + v}},
		Requested: manifest.Requested{Digest: "set-" + v, Sources: []hotupdate.Origin{{URL: "http://o/a", Name: "a", SHA256: "sum-" + v}}},
	}
	return NewRevision(r, time.Now().Add(-ago))
}

func (s *Store) accept(t *testing.T, v string) error {
	t.Helper()
	return s.Accepted(t.Context(), version(v, 0))
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
	writes := r.writes
	if err := s.accept(t, "v2"); err != nil || r.writes != writes {
		t.Errorf("the same again: %d writes, %v", r.writes-writes, err)
	}
	r.away = true
	if err := s.accept(t, "v1"); !errors.Is(err, errAway) {
		t.Errorf("rolled back during the outage: %v", err)
	}
	r.away = false
	if err := s.accept(t, "v1"); err != nil || r.current(t) != "v1" {
		t.Errorf("after going back: recorded %s, %v", r.current(t), err)
	}
}

// An operator who rolls back to v1 on the pods that have it means the workload: v2 has ended the pod that accepted it.
func TestGoingBackOnThePodsThatHaveItIsRecorded(t *testing.T) {
	t.Parallel()
	r := &records{data: map[string]string{}}
	first, other := r.in("web-0"), r.in("web-1")
	for _, err := range []error{first.accept(t, "v1"), other.accept(t, "v2"), first.accept(t, "v1")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := r.current(t); got != "v1" {
		t.Errorf("new pods begin with %s", got)
	}
}

// A revision recorded after an outage, or by the next sidecar of the pod, does not replace what another pod has accepted
// meanwhile. A revision recorded at once does, because the clock of the other pod may be ahead.
func TestALateRecordLeavesANewerOneOfAnotherPod(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ago, others time.Duration
		want        string
	}{
		"late, and another since":    {time.Hour, time.Minute, "v2"},
		"late, and another before":   {time.Hour, 2 * time.Hour, "v1"},
		"at once, and another ahead": {0, -time.Minute, "v1"},
		"not so late":                {10 * time.Second, 0, "v1"},
		"a little late":              {20 * time.Second, 10 * time.Second, "v2"},
	} {
		r := &records{data: map[string]string{}}
		for _, err := range []error{
			r.in("web-1").Accepted(t.Context(), version("v2", tt.others)),
			r.in("web-0").Accepted(t.Context(), version("v1", tt.ago)),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := r.current(t); got != tt.want {
			t.Errorf("%s: recorded %s, want %s", name, got, tt.want)
		}
	}
}

// A new pod would have the files, but report the version before.
func TestANewVersionOfTheSameFilesIsRecorded(t *testing.T) {
	t.Parallel()
	r := &records{data: map[string]string{}}
	s := r.in("web-0")
	for _, v := range []string{"v1", "v2"} {
		m := version("v1", 0)
		m.Version = v
		if err := s.Accepted(t.Context(), m); err != nil || r.current(t) != v {
			t.Errorf("recorded %s, %v; want %s", r.current(t), err, v)
		}
	}
}

// Other files are another revision, also under the same version.
func TestOtherFilesOfTheSameVersionAreRecorded(t *testing.T) {
	t.Parallel()
	r := &records{data: map[string]string{}}
	s, other := r.in("web-0"), version("v2", 0)
	other.Version = "v1"
	for _, m := range []Revision{version("v1", 0), other} {
		if err := s.Accepted(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := s.Latest(t.Context()); err != nil || len(found) != 2 || found[0].Digest != "digest-v2" {
		t.Errorf("new pods try %+v, %v", found, err)
	}
}

// Pods fall back to a revision that was not left when the last one cannot be had.
func TestGoingForwardAgainLeavesNothing(t *testing.T) {
	t.Parallel()
	r := &records{data: map[string]string{}}
	s := r.in("web-0")
	for _, step := range []struct {
		accepted string
		want     []string
	}{
		{"v1", []string{"v1"}},
		{"v2", []string{"v2", "v1"}},
		{"v3", []string{"v3", "v2", "v1"}},
		{"v2", []string{"v2", "v1"}}, // v3 is left
		{"v3", []string{"v3", "v2", "v1"}},
		{"v1", []string{"v1"}},
		{"v2", []string{"v2", "v1"}}, // v3 is still left
	} {
		if err := s.accept(t, step.accepted); err != nil {
			t.Fatal(err)
		}
		wanted, err := r.in("web-1").Latest(t.Context())
		var got []string
		for _, m := range wanted {
			got = append(got, m.Version)
		}
		if err != nil || !slices.Equal(got, step.want) {
			t.Errorf("after %s new pods try %q, %v; want %q", step.accepted, got, err, step.want)
		}
	}
}

// A record that someone has damaged is repaired.
func TestADamagedRecordIsReplaced(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"{", strings.Repeat("x", maxRecord+1)} {
		r := &records{data: map[string]string{"StatefulSet.web": text}}
		if _, err := r.in("web-0").Latest(t.Context()); !errors.Is(err, ErrDamaged) {
			t.Errorf("%.10s: %v", text, err)
		}
		if err := r.in("web-0").accept(t, "v1"); err != nil || r.current(t) != "v1" {
			t.Errorf("%.10s: recorded %s, %v", text, r.current(t), err)
		}
	}
}

func TestRollbackToBeforeTheFirstUpdateIsNoPartialRevision(t *testing.T) {
	t.Parallel()
	r := &records{data: map[string]string{}}
	s := r.in("web-0")
	for _, err := range []error{
		s.accept(t, "v1"),
		s.Accepted(t.Context(), NewRevision(hotupdate.Revision{Version: hotupdate.InitialVersion, Digest: "d", Files: []store.File{{Name: "image", SHA256: "s"}}}, time.Now())),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if found, err := r.in("web-1").Latest(t.Context()); len(found) > 0 || err != nil {
		t.Errorf("a new pod would begin with %+v, %v", found, err)
	}
	if err := s.accept(t, "v2"); err != nil || r.current(t) != "v2" || strings.Contains(r.data["StatefulSet.web"], "partial") {
		t.Errorf("record %s, %v", r.data["StatefulSet.web"], err)
	}
	// Nor is v1 what pods fall back to that cannot have v2: it was gone back from.
	if found, err := r.in("web-1").Latest(t.Context()); len(found) != 1 || found[0].Version != "v2" || err != nil {
		t.Errorf("after v2 new pods try %+v, %v", found, err)
	}
	if err := s.accept(t, "v3"); err != nil {
		t.Fatal(err)
	}
	if found, err := r.in("web-1").Latest(t.Context()); len(found) != 2 || found[1].Version != "v2" || err != nil {
		t.Errorf("after v3 new pods try %+v, %v", found, err)
	}
}

// A revision before the last one is a way out only as a whole.
func TestPodsDoNotFallBackToAPartialRevision(t *testing.T) {
	t.Parallel()
	r := &records{data: map[string]string{}}
	partial := version("v2", 0)
	partial.Partial, partial.Reason = true, "why"
	for _, m := range []Revision{version("v1", 0), partial} {
		if err := r.in("web-0").Accepted(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	found, err := r.in("web-1").Latest(t.Context())
	if err != nil || len(found) != 2 || found[0].Version != "v2" || found[1].Version != "v1" {
		t.Errorf("the last one is partial: %+v, %v", found, err)
	}
	if err := r.in("web-0").accept(t, "v3"); err != nil {
		t.Fatal(err)
	}
	found, err = r.in("web-1").Latest(t.Context())
	if err != nil || len(found) != 2 || found[0].Version != "v3" || found[1].Version != "v1" {
		t.Errorf("the one before is partial: %+v, %v", found, err)
	}
}

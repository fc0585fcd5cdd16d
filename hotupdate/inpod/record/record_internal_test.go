package record

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/hotupdate/manifest"
	"github.com/refit-project/refit/hotupdate/store"
	"github.com/refit-project/refit/internal/kube/ownpod"
)

func TestHighestVersionOfTheReference(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, want string }{
		"numbers, not text":      {"hot_update: {v9: a, v10: b, v2: c}", "v10"},
		"four parts":             {"hot_update: {v1.2.3.4: a, v1.2.3: b}", "v1.2.3.4"},
		"zeros in front":         {"hot_update: {v01.002: a, v1.1: b}", "v01.002"},
		"equal ones":             {"hot_update: {v1: a, v1.0: b}", "v1.0"},
		"longer than an integer": {"hot_update: {v99999999999999999999999: a, v2: b}", "v99999999999999999999999"},
		"the sentinel":           {"hot_update: {OriginVersion: OriginUrl}", ""},
		"another plugin":         {"other: {v1: a}", ""},
		"not a map":              {"hot_update: 3", ""},
		"empty":                  {"", ""},
	}
	for name, tt := range tests {
		if got, _ := parseReference(tt.text); got.Version != tt.want {
			t.Errorf("%s: %q, want %q", name, got.Version, tt.want)
		}
	}
}

// api has ReplicaSets and counts what it is asked for.
type api struct {
	API
	sets  map[string]string // JSON by name
	asked int
}

func (a *api) Get(_ context.Context, ref ownpod.Reference) ([]byte, error) {
	a.asked++
	if text, ok := a.sets[ref.Name]; ok && ref.Resource == "replicasets" {
		return []byte(text), nil
	}
	return nil, ownpod.ErrForbidden
}

// A workload is identified by its kind, its name and its UID; one that was created again with the same name is another one.
func TestWorkloadOfAPod(t *testing.T) {
	t.Parallel()
	owned := func(kind, name string) *corev1.Pod {
		yes := true
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "pod-uid", OwnerReferences: []metav1.OwnerReference{
			{Kind: kind, Name: name, UID: "owner-uid", Controller: &yes}}}}
	}
	a := &api{sets: map[string]string{
		"a-b-5d4f": `{"metadata":{"ownerReferences":[{"kind":"Deployment","name":"a-b","uid":"deployment-uid","controller":true}]}}`,
		"alone":    `{"metadata":{}}`,
	}}
	tests := map[string]struct {
		pod  *corev1.Pod
		want workload
		key  string
	}{
		"deployment":             {owned("ReplicaSet", "a-b-5d4f"), workload{"Deployment", "a-b", "deployment-uid"}, "Deployment.a-b"},
		"replica set of its own": {owned("ReplicaSet", "alone"), workload{"ReplicaSet", "alone", "owner-uid"}, "ReplicaSet.alone"},
		"stateful set":           {owned("StatefulSet", "a.b"), workload{"StatefulSet", "a.b", "owner-uid"}, "StatefulSet.a.b"},
		"pod of its own":         {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "pod-uid"}}, workload{"Pod", "p", "pod-uid"}, "Pod.p"},
	}
	for name, tt := range tests {
		s := New(Options{API: a, ConfigMap: "c", Observed: func() *corev1.Pod { return tt.pod }})
		got, err := s.workload(t.Context())
		if err != nil || got != tt.want || got.key() != tt.key {
			t.Errorf("%s: %v %s, %v", name, got, got.key(), err)
		}
		before := a.asked
		if again, err := s.workload(t.Context()); err != nil || again != tt.want || a.asked != before {
			t.Errorf("%s: asked again: %v, %v", name, again, err)
		}
	}
	s := New(Options{API: a, ConfigMap: "c", Observed: func() *corev1.Pod { return owned("ReplicaSet", "secret") }})
	if _, err := s.workload(t.Context()); !errors.Is(err, ownpod.ErrForbidden) || !strings.Contains(err.Error(), "replicasets") {
		t.Errorf("a role without replicasets: %v", err)
	}
}

func TestRevisionIsRecordedWithItsSources(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 5, time.UTC)
	from := func(name string) hotupdate.Origin {
		return hotupdate.Origin{URL: "http://o/" + name, Name: name, SHA256: "sum-" + name, Mode: 0o600, Signature: []byte{1}}
	}
	inline, stripped := hotupdate.Origin{Name: "c", SHA256: "sum-c"}, from("d")
	stripped.Stripped = true
	accepted := func(requested ...hotupdate.Origin) hotupdate.Revision {
		return hotupdate.Revision{Version: "v", Digest: "d", Requested: manifest.Requested{Digest: "set", Sources: requested}, Files: []store.File{{Name: "a"}}}
	}
	initial, ofTriggers, old := accepted(), accepted(), accepted()
	initial.Version, initial.Requested = hotupdate.InitialVersion, manifest.Requested{}
	ofTriggers.Requested.Digest = manifest.Digest(nil)
	old.Requested = manifest.Requested{}
	source := func(name string) origin {
		return origin{URL: "http://o/" + name, Name: name, SHA256: "sum-" + name, Mode: 0o600, Signature: []byte{1}}
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		accepted hotupdate.Revision
		want     Revision
	}{
		"two sources": {accepted(from("a"), from("b")), Revision{Version: "v", Digest: "d", Set: "set", Sources: []origin{source("a"), source("b")}}},
		"content of the request": {accepted(from("a"), inline),
			Revision{Version: "v", Digest: "d", Set: "set", Sources: []origin{source("a")}, Partial: true, Reason: reasonInline, Lost: []string{"c"}}},
		"a URL that is not stored": {accepted(stripped, from("a")),
			Revision{Version: "v", Digest: "d", Set: "set", Sources: []origin{source("a")}, Partial: true, Reason: reasonPrivateURL, Lost: []string{"d"}}},
		"manifest of an earlier version": {old, Revision{Version: "v", Digest: "d", Partial: true, Reason: reasonUnknown}},
		"files of triggers alone":        {ofTriggers, Revision{Version: "v"}},
		"before the first update":        {initial, Revision{Version: hotupdate.InitialVersion}},
	} {
		tt.want.Accepted = at
		if diff := cmp.Diff(tt.want, NewRevision(tt.accepted, now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func TestRecordIsBounded(t *testing.T) {
	t.Parallel()
	var r record
	for i := range 100 {
		r = r.accept(Revision{Version: fmt.Sprint("v", i), Digest: fmt.Sprint("d", i), Accepted: noon})
	}
	if len(r.Revisions) != 5 || r.Revisions[0].Version != "v99" || r.Current != "d99" {
		t.Errorf("%+v", r)
	}
	if r = r.accept(r.Revisions[3]); len(r.Revisions) != 5 || r.Revisions[0].Version != "v96" {
		t.Errorf("after going back: %+v", r)
	}
	long := Revision{Digest: "long", Accepted: noon, Sources: []origin{{URL: strings.Repeat("u", maxRecord/2)}}}
	r = r.accept(long)
	for i := range 3 {
		long.Digest = fmt.Sprint("long", i)
		r = r.accept(long)
	}
	text, err := formatRecord(r)
	if err != nil || len(text) > 16<<10 {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	back, err := parseRecord(text)
	if m, ok := back.current(); err != nil || !ok || m.Digest != "long2" {
		t.Errorf("read again: %+v %v", back, err)
	}
	long.Digest, long.Sources = "huge", []origin{{URL: strings.Repeat("u", maxRecord)}}
	if _, err := formatRecord(r.accept(long)); err == nil {
		t.Error("a revision that does not fit")
	}
}

func FuzzRecords(f *testing.F) {
	f.Add(`{"current":"d","revisions":[{"version":"v1","digest":"d","sources":[{"url":"u"}]}]}`)
	f.Add("hot_update: {v1: a}")
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := parseRecord(text); err == nil {
			if m, ok := r.current(); ok {
				_ = m.Request().Validate()
			}
		}
		if m, ok := parseReference(text); ok && !referenceVersion.MatchString(m.Version) {
			t.Errorf("version %q", m.Version)
		}
	})
}

// Files that an update keeps from a revision that could not be restored have to be available again, or be part of the
// update.
func TestWhatCannotBeHadAgainHasToComeWithTheUpdate(t *testing.T) {
	t.Parallel()
	bring := func(names ...string) hotupdate.Request {
		r := hotupdate.Request{Version: "next"}
		for _, name := range names {
			r.Sources = append(r.Sources, hotupdate.Source{Name: name, Data: []byte(name)})
		}
		return r
	}
	sources := []origin{{URL: "http://o/a", Name: "a", SHA256: "sum-a"}, {URL: "http://o/b", Name: "b", SHA256: "sum-b"}}
	for name, tt := range map[string]struct {
		of    Revision
		with  hotupdate.Request
		names []string
		fails string
	}{
		"all can be had":          {Revision{Version: "v", Sources: sources}, bring("b", "c"), []string{"a", "b", "c"}, ""},
		"one is lost":             {Revision{Version: "v", Sources: sources, Partial: true, Reason: "why", Lost: []string{"x", "y"}}, bring("x"), nil, "of v: y (why)"},
		"what is lost is brought": {Revision{Version: "v", Sources: sources, Partial: true, Lost: []string{"x"}}, bring("x"), []string{"a", "b", "x"}, ""},
		"it is not known what":    {Revision{Version: "v", Sources: sources, Partial: true, Reason: "why"}, bring("x"), nil, "of v: why"},
	} {
		got, err := tt.of.Merge(tt.with)
		if tt.fails != "" {
			if !errors.Is(err, ErrLost) || !strings.HasSuffix(err.Error(), tt.fails) {
				t.Errorf("%s: %v, want %s", name, err, tt.fails)
			}
			continue
		}
		var names []string
		for _, s := range got.Sources {
			names = append(names, s.Name)
		}
		if diff := cmp.Diff(tt.names, names); err != nil || diff != "" || got.Version != "next" || got.Sources[len(got.Sources)-1].Data == nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// Files of an archive that cannot be fetched again have no names here: it is not known which files are lost.
func TestALostArchiveHasNoKnownFiles(t *testing.T) {
	t.Parallel()
	of := func(sources ...hotupdate.Origin) Revision {
		return NewRevision(hotupdate.Revision{Version: "v", Digest: "d", Requested: manifest.Requested{Digest: "set", Sources: sources}}, noon)
	}
	plain, archive := hotupdate.Origin{Name: "c", SHA256: "1"}, hotupdate.Origin{Name: "dir", SHA256: "2", Format: hotupdate.TarGz}
	long := hotupdate.Origin{Name: strings.Repeat("n", 2<<10+1), SHA256: "3"}
	for name, tt := range map[string]struct {
		got  Revision
		lost []string
	}{
		"a file": {of(plain), []string{"c"}}, "an archive": {of(archive), nil}, "an archive, then a file": {of(archive, plain), nil},
		"a file, then an archive": {of(plain, archive), nil}, "names too long for the record": {of(plain, long), nil},
	} {
		if diff := cmp.Diff(tt.lost, tt.got.Lost); diff != "" || !tt.got.Partial {
			t.Errorf("%s: partial %t, lost (-want +got):\n%s", name, tt.got.Partial, diff)
		}
	}
	if _, err := parseRecord(strings.Repeat(" ", maxRecord+1) + "{}"); !errors.Is(err, ErrDamaged) {
		t.Errorf("a record beyond the limit: %v", err)
	}
}

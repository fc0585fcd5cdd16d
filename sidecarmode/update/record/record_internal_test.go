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
	"github.com/refit-project/refit/hotupdate/store"
	"github.com/refit-project/refit/kube/ownpod"
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

// A workload is known by its kind, its name and its UID; one that was created again under its name is another.
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
	source := func(name string) hotupdate.Source { return hotupdate.Source{URL: "http://o/" + name, Name: name} }
	accepted := func(names ...string) hotupdate.Revision {
		r := hotupdate.Revision{Version: "v", Digest: strings.Join(names, "+")}
		for _, n := range names {
			r.Sources = append(r.Sources, hotupdate.Origin{Name: n, SHA256: "sum-" + n})
			r.Files = append(r.Files, store.File{Name: n, SHA256: "sum-" + n})
		}
		return r
	}
	var o Options
	describe := func(r Revision) []string {
		var got []string
		for _, s := range r.Sources {
			got = append(got, s.Name+" "+s.SHA256+" "+s.URL)
		}
		return got
	}
	first := o.newRevision(hotupdate.Request{Sources: []hotupdate.Source{source("a"), source("b")}}, accepted("a", "b"), Revision{}, now)
	all := accepted("b", "c")
	all.Files = append(all.Files, store.File{Name: "a", SHA256: "sum-a"})
	second := o.newRevision(hotupdate.Request{Keep: true, Sources: []hotupdate.Source{source("b"), source("c")}}, all, first, now)
	want := []string{"a sum-a http://o/a", "b sum-b http://o/b", "c sum-c http://o/c"}
	if diff := cmp.Diff(want, describe(second)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	replaced := o.newRevision(hotupdate.Request{Keep: true, Sources: []hotupdate.Source{source("b")}}, accepted("b"), first, now)
	if diff := cmp.Diff([]string{"b sum-b http://o/b"}, describe(replaced)); diff != "" {
		t.Errorf("a source of a file that is gone (-want +got):\n%s", diff)
	}
	inline := o.newRevision(hotupdate.Request{Keep: true, Sources: []hotupdate.Source{{Name: "d", Data: []byte("x")}}}, all, second, now)
	if !inline.Partial || second.Partial || len(inline.Sources) != 3 {
		t.Errorf("content that came with the request: %+v", inline)
	}
	after := o.newRevision(hotupdate.Request{Keep: true, Sources: []hotupdate.Source{source("e")}}, accepted("e"), inline, now)
	if !after.Partial {
		t.Error("that something cannot be downloaded again is forgotten")
	}
	o.Delivered = func() map[string]string { return map[string]string{"a": "sum-a"} }
	if withTrigger := o.newRevision(hotupdate.Request{Sources: []hotupdate.Source{source("b")}}, accepted("a", "b"), Revision{}, now); withTrigger.Set != accepted("b").DigestWithout(nil) {
		t.Errorf("digest of the set counts files of triggers: %s", withTrigger.Set)
	}
}

// Whoever may read the ConfigMap is not to read credentials.
func TestURLsWithCredentialsAreNotRecorded(t *testing.T) {
	t.Parallel()
	for address, stored := range map[string]struct{ always, withQueries bool }{
		"https://o/a":                        {true, true},
		"https://o/a?X-Amz-Signature=s3cret": {false, true},
		"https://s3cret@o/a":                 {false, false},
		"https://user:s3cret@o/a?x=1":        {false, false},
	} {
		for queries, want := range map[bool]bool{false: stored.always, true: stored.withQueries} {
			o := Options{StoreQueries: queries}
			r := o.newRevision(hotupdate.Request{Sources: []hotupdate.Source{{URL: address, Name: "a"}}}, hotupdate.Revision{}, Revision{}, time.Now())
			text, err := formatRecord(record{}.accept(r))
			if err != nil || r.Partial == want || !want && strings.Contains(text, "s3cret") {
				t.Errorf("%s, queries stored: %v: %s, %v", address, queries, text, err)
			}
		}
	}
}

func TestRecordIsBounded(t *testing.T) {
	t.Parallel()
	var r record
	for i := range 100 {
		r = r.accept(Revision{Version: fmt.Sprint("v", i), Digest: fmt.Sprint("d", i)})
	}
	if len(r.Revisions) != maxRevisions || r.Revisions[0].Version != "v99" || r.Current != "d99" {
		t.Errorf("%+v", r)
	}
	if r = r.accept(r.Revisions[3]); len(r.Revisions) != maxRevisions || r.Revisions[0].Version != "v96" {
		t.Errorf("after going back: %+v", r)
	}
	long := Revision{Digest: "long", Sources: []origin{{URL: strings.Repeat("u", maxRecord/2)}}}
	r = r.accept(long)
	for i := range 3 {
		long.Digest = fmt.Sprint("long", i)
		r = r.accept(long)
	}
	text, err := formatRecord(r)
	if err != nil || len(text) > maxRecord {
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

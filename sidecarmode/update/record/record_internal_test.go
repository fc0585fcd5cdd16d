package update

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/hotupdate"
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

func TestKeysAreUnambiguous(t *testing.T) {
	t.Parallel()
	owned := func(kind, name, hash string) *corev1.Pod {
		yes := true
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "pod-uid", OwnerReferences: []metav1.OwnerReference{
			{Kind: kind, Name: name, UID: "owner-uid", Controller: &yes}}}}
		if hash != "" {
			p.Labels = map[string]string{"pod-template-hash": hash}
		}
		return p
	}
	tests := map[string]struct {
		pod *corev1.Pod
		key string
		uid string
	}{
		"deployment":              {owned("ReplicaSet", "a-b-5d4f", "5d4f"), "Deployment.a-b", ""},
		"replica set of its own":  {owned("ReplicaSet", "a-b", ""), "ReplicaSet.a-b", "owner-uid"},
		"stateful set":            {owned("StatefulSet", "a.b", ""), "StatefulSet.a.b", "owner-uid"},
		"pod of its own":          {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "pod-uid"}}, "Pod.p", "pod-uid"},
		"name that ends in hash-": {owned("ReplicaSet", "x-h", "h"), "Deployment.x", ""},
	}
	for name, tt := range tests {
		if w := workloadOf(tt.pod); w.key() != tt.key || w.uid != tt.uid {
			t.Errorf("%s: %s %q", name, w.key(), w.uid)
		}
	}
}

func TestRemember(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 5, time.UTC)
	source := func(name string) hotupdate.Source {
		return hotupdate.Source{URL: "http://o/" + name + "?token=1", Name: name}
	}
	accepted := func(names ...string) hotupdate.Revision {
		r := hotupdate.Revision{Version: "v", Digest: strings.Join(names, "+")}
		for _, n := range names {
			r.Sources = append(r.Sources, hotupdate.Origin{Name: n, SHA256: "sum-" + n})
		}
		return r
	}
	first := remember(hotupdate.Request{Sources: []hotupdate.Source{source("a"), source("b")}}, accepted("a", "b"), remembered{}, now)
	second := remember(hotupdate.Request{Keep: true, Sources: []hotupdate.Source{source("b"), source("c")}}, accepted("b", "c"), first, now)
	var got []string
	for _, o := range second.Sources {
		got = append(got, o.Name+" "+o.SHA256+" "+o.URL)
	}
	want := []string{"a sum-a http://o/a?token=1", "b sum-b http://o/b?token=1", "c sum-c http://o/c?token=1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	inline := remember(hotupdate.Request{Keep: true, Sources: []hotupdate.Source{{Name: "d", Data: []byte("x")}}}, accepted("d"), second, now)
	if !inline.Partial || second.Partial || len(inline.Sources) != 3 {
		t.Errorf("content that came with the request: %+v", inline)
	}
	after := remember(hotupdate.Request{Keep: true, Sources: []hotupdate.Source{source("e")}}, accepted("e"), inline, now)
	if !after.Partial {
		t.Error("what is lost is forgotten")
	}
}

func TestRecordIsBounded(t *testing.T) {
	t.Parallel()
	var r record
	for i := range 100 {
		r = r.accept(remembered{Version: fmt.Sprint("v", i), Digest: fmt.Sprint("d", i)})
	}
	if len(r.Revisions) != maxRemembered || r.Revisions[0].Version != "v99" || r.Current != "d99" {
		t.Errorf("%+v", r)
	}
	if r = r.accept(r.Revisions[3]); len(r.Revisions) != maxRemembered || r.Revisions[0].Version != "v96" {
		t.Errorf("after going back: %+v", r)
	}
	long := remembered{Digest: "long", Sources: []origin{{URL: strings.Repeat("u", maxRecord/2)}}}
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
				_ = m.request().Validate()
			}
		}
		if m, ok := parseReference(text); ok && !referenceVersion.MatchString(m.Version) {
			t.Errorf("version %q", m.Version)
		}
	})
}

package v1alpha1_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

const (
	syncKey       = v1beta1.AnnotationSyncContainerStatuses
	acquiredKey   = v1beta1.AnnotationUnreadyAcquired
	conditionsKey = v1beta1.AnnotationConditions
)

var since = metav1.NewTime(time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC))

func grace() metav1.Condition {
	return metav1.Condition{
		Type: "PreRecreateGrace", Status: "True", Reason: "PreRecreateGrace", LastTransitionTime: since,
		Message: "Pod has been forced to not-ready for unreadyGracePeriodSeconds drain",
	}
}

func accepted() metav1.Condition {
	return metav1.Condition{Type: "Accepted", Status: "True", Reason: "Taken", LastTransitionTime: since, ObservedGeneration: 1}
}

func toBeta(t *testing.T, a *v1alpha1.ContainerRecreateRequest) *v1beta1.ContainerRecreateRequest {
	t.Helper()
	var b v1beta1.ContainerRecreateRequest
	if err := v1alpha1.ConvertTo(a, &b); err != nil {
		t.Fatalf("ConvertTo: %v", err)
	}
	return &b
}

func toAlpha(t *testing.T, b *v1beta1.ContainerRecreateRequest) *v1alpha1.ContainerRecreateRequest {
	t.Helper()
	var a v1alpha1.ContainerRecreateRequest
	if err := v1alpha1.ConvertFrom(b, &a); err != nil {
		t.Fatalf("ConvertFrom: %v", err)
	}
	return &a
}

func TestConvertTo(t *testing.T) {
	t.Parallel()
	snapshot := []v1beta1.ContainerStatusSnapshot{{Name: "app", Ready: true, RestartCount: 2, ContainerID: "containerd://b"}}
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        v1beta1.ContainerRecreateRequestStatus
		left        map[string]string
	}{
		"nothing": {},
		"snapshot": {
			annotations: map[string]string{syncKey: `[{"name":"app","ready":true,"restartCount":2,"containerID":"containerd://b"}]`},
			want:        v1beta1.ContainerRecreateRequestStatus{ContainerStatusSnapshot: snapshot},
		},
		"other annotations stay": {
			annotations: map[string]string{syncKey: `[]`, "team": "a"},
			want:        v1beta1.ContainerRecreateRequestStatus{ContainerStatusSnapshot: []v1beta1.ContainerStatusSnapshot{}},
			left:        map[string]string{"team": "a"},
		},
		"grace in another time zone": {
			annotations: map[string]string{acquiredKey: "2026-11-21T18:00:00+08:00"},
			want:        v1beta1.ContainerRecreateRequestStatus{Conditions: []metav1.Condition{grace()}},
		},
		"malformed data stays where its writer sees it": {
			annotations: map[string]string{syncKey: `{"name"`, acquiredKey: "yesterday", conditionsKey: "null"},
			left:        map[string]string{syncKey: `{"name"`, acquiredKey: "yesterday", conditionsKey: "null"},
		},
		"two conditions of one type are malformed": {
			annotations: map[string]string{conditionsKey: `[{"type":"A"},{"type":"A"}]`},
			left:        map[string]string{conditionsKey: `[{"type":"A"},{"type":"A"}]`},
		},
		"more conditions than the stored version takes are malformed": {
			annotations: map[string]string{conditionsKey: "[" + strings.Repeat(`{},`, 32) + "{}]"},
			left:        map[string]string{conditionsKey: "[" + strings.Repeat(`{},`, 32) + "{}]"},
		},
		"a removed grace annotation removes the condition": {
			annotations: map[string]string{conditionsKey: mustJSON(t, []metav1.Condition{grace(), accepted()})},
			want:        v1beta1.ContainerRecreateRequestStatus{Conditions: []metav1.Condition{accepted()}},
		},
		"a later grace annotation replaces the condition": {
			annotations: map[string]string{
				acquiredKey:   "2026-11-21T10:00:00Z",
				conditionsKey: `[{"type":"PreRecreateGrace","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}]`,
			},
			want: v1beta1.ContainerRecreateRequestStatus{Conditions: []metav1.Condition{grace()}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := &v1alpha1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}
			got := toBeta(t, in)
			if diff := cmp.Diff(tc.want, got.Status); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.left, got.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConvertFrom(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		want       map[string]string
	}{
		"nothing": {},
		"grace alone needs no second annotation": {
			conditions: []metav1.Condition{grace()},
			want:       map[string]string{acquiredKey: "2026-11-21T10:00:00Z"},
		},
		"foreign conditions": {
			conditions: []metav1.Condition{accepted()},
			want:       map[string]string{conditionsKey: mustJSON(t, []metav1.Condition{accepted()})},
		},
		"grace that is over is not shown to a kruise client": {
			conditions: []metav1.Condition{{Type: "PreRecreateGrace", Status: "False", LastTransitionTime: since}},
			want: map[string]string{
				conditionsKey: mustJSON(t, []metav1.Condition{{Type: "PreRecreateGrace", Status: "False", LastTransitionTime: since}}),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := &v1beta1.ContainerRecreateRequest{}
			in.Status.Conditions = tc.conditions
			if diff := cmp.Diff(tc.want, toAlpha(t, in).Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConvertFromBoundsTheAnnotation(t *testing.T) {
	t.Parallel()
	in := &v1beta1.ContainerRecreateRequest{}
	for i := range v1beta1.MaxConditions {
		in.Status.Conditions = append(in.Status.Conditions, metav1.Condition{Type: strings.Repeat("t", i+1), Message: strings.Repeat("é", 16<<10)})
	}
	value := toAlpha(t, in).Annotations[conditionsKey]
	if len(value) > 128<<10 || !utf8.ValidString(value) {
		t.Errorf("annotation has %d bytes, valid UTF-8: %t", len(value), utf8.ValidString(value))
	}
	got := toBeta(t, toAlpha(t, in)).Status.Conditions
	if len(got) != v1beta1.MaxConditions {
		t.Fatalf("%d conditions came back, want %d", len(got), v1beta1.MaxConditions)
	}
	if !strings.Contains(got[0].Message, "shortened") {
		t.Errorf("first message %.40q does not say that it was shortened", got[0].Message)
	}
}

// FuzzRoundTrip: what is stored survives being read and written back by a client of v1alpha1, and the other way round.
func FuzzRoundTrip(f *testing.F) {
	for _, seed := range []string{"", "a", strings.Repeat("0123456789abcdef", 64)} {
		f.Add([]byte(seed), seed, seed, seed)
	}
	f.Add([]byte("x"), `[{"name":"app","ready":true}]`, "2026-11-21T18:00:00+08:00", `[{"type":"A","status":"True"}]`)
	f.Fuzz(func(t *testing.T, data []byte, snapshot, acquired, conditions string) {
		var stored v1beta1.ContainerRecreateRequest
		fill(data, &stored)
		want := overTheWire(t, &stored)
		got := overTheWire(t, toBeta(t, overTheWire(t, toAlpha(t, want))))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("v1beta1 through v1alpha1 (-want +got):\n%s", diff)
		}
		// Annotations written by a foreign hand: one pass may tidy them, a second one changes nothing.
		foreign := toAlpha(t, want)
		foreign.Annotations = map[string]string{syncKey: snapshot, acquiredKey: acquired, conditionsKey: conditions}
		once := overTheWire(t, toBeta(t, overTheWire(t, foreign)))
		twice := overTheWire(t, toBeta(t, overTheWire(t, toAlpha(t, once))))
		if diff := cmp.Diff(once, twice); diff != "" {
			t.Errorf("foreign annotations (-once +twice):\n%s", diff)
		}
	})
}

func fill(data []byte, r *v1beta1.ContainerRecreateRequest) {
	randfill.NewFromGoFuzz(data).NilChance(0.3).NumElements(0, 3).Funcs(
		func(m *metav1.ObjectMeta, c randfill.Continue) {
			m.Name, m.Namespace = c.String(8), c.String(8)
			c.Fill(&m.Labels)
			c.Fill(&m.Annotations)
		},
		func(m *metav1.TypeMeta, _ randfill.Continue) { *m = metav1.TypeMeta{} },
		func(s *v1beta1.ContainerRecreateRequestStatus, c randfill.Continue) {
			c.FillNoCustom(s)
			seen := map[string]bool{"": true}
			unique := []metav1.Condition(nil)
			for _, condition := range s.Conditions {
				if c.Bool() {
					condition.Type = v1beta1.ConditionPreRecreateGrace
				}
				if !seen[condition.Type] {
					unique = append(unique, condition)
				}
				seen[condition.Type] = true
			}
			s.Conditions = unique
		},
		func(m *metav1.Time, c randfill.Continue) { *m = metav1.Unix(c.Int63()%4e9, 0) },
	).Fill(r)
}

// overTheWire is what the API server does between any two steps; it also turns empty into absent.
func overTheWire[T any](t *testing.T, in *T) *T {
	t.Helper()
	out := new(T)
	if err := json.Unmarshal([]byte(mustJSON(t, in)), out); err != nil {
		t.Fatal(err)
	}
	return out
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

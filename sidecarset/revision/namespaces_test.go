package revision_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/revision"
)

const custom = v1beta1.LabelSidecarSetCustomVersion

func numbered(namespace, name string, number int64, labels map[string]string) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}, Revision: number}
}

func TestRevisionsOfOpenKruiseCountUnlessThereIsACopy(t *testing.T) {
	t.Parallel()
	var got []string
	for _, r := range revision.Merged("refit-system", []*appsv1.ControllerRevision{
		numbered("kruise-system", "a", 1, nil), numbered("kruise-system", "b", 2, nil), numbered("refit-system", "b", 3, nil), numbered("refit-system", "c", 4, nil),
	}) {
		got = append(got, r.Namespace+"/"+r.Name)
	}
	if diff := cmp.Diff([]string{"refit-system/b", "refit-system/c", "kruise-system/a"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestACopyHasWhatOthersReadOfARevision(t *testing.T) {
	t.Parallel()
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "logs", UID: "uid"}}
	of := numbered("kruise-system", "logs-1", 7, map[string]string{"team": "a"})
	of.Data = runtime.RawExtension{Raw: []byte(`{"spec":{}}`)}
	of.UID, of.ResourceVersion = "theirs", "5"
	of.Annotations = map[string]string{v1beta1.AnnotationSidecarSetHash: "full", v1beta1.AnnotationSidecarSetHashWithoutImage: "bare", "large": "text"}
	want := numbered("refit-system", "logs-1", 7, map[string]string{"team": "a"})
	want.Data = of.Data
	want.Annotations = map[string]string{v1beta1.AnnotationSidecarSetHash: "full", v1beta1.AnnotationSidecarSetHashWithoutImage: "bare"}
	want.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, v1beta1.GroupVersion().WithKind("SidecarSet"))}
	got := revision.Copy(set, "refit-system", of)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got.Labels["team"], got.Data.Raw[0] = "b", 'x'
	if of.Labels["team"] != "a" || of.Data.Raw[0] != '{' {
		t.Error("the revision itself was changed")
	}
}

func TestACopyFollowsTheNumberAndTheCustomVersion(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		number   int64 // of the copy, where the other has 2
		has, of  map[string]string
		want     map[string]string // labels of the copy afterwards
		followed bool
	}{
		"the same":                  {2, map[string]string{custom: "v1", "a": "b"}, map[string]string{custom: "v1"}, nil, false},
		"without labels":            {2, nil, nil, nil, false},
		"another number":            {1, map[string]string{"a": "b"}, nil, map[string]string{"a": "b"}, true},
		"another version":           {2, map[string]string{custom: "v1", "a": "b"}, map[string]string{custom: "v2"}, map[string]string{custom: "v2", "a": "b"}, true},
		"a version, and no labels":  {2, nil, map[string]string{custom: "v2"}, map[string]string{custom: "v2"}, true},
		"no version any more":       {2, map[string]string{custom: "v1", "a": "b"}, nil, map[string]string{"a": "b"}, true},
		"an empty version":          {2, map[string]string{"a": "b"}, map[string]string{custom: ""}, map[string]string{"a": "b", custom: ""}, true},
		"other labels do not count": {2, map[string]string{"a": "b"}, map[string]string{"c": "d"}, nil, false},
	} {
		had := numbered("refit-system", "r", tc.number, tc.has)
		before := had.DeepCopy()
		got := revision.Follow(had, numbered("kruise-system", "r", 2, tc.of))
		if (got != nil) != tc.followed {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		if got != nil && (got.Revision != 2 || !cmp.Equal(tc.want, got.Labels)) {
			t.Errorf("%s: number %d, labels %v", name, got.Revision, got.Labels)
		}
		if diff := cmp.Diff(before, had); diff != "" {
			t.Errorf("%s: the revision itself was changed:\n%s", name, diff)
		}
	}
}

func TestACustomVersionIsGivenWhereTheUserGivesIt(t *testing.T) {
	t.Parallel()
	type version struct{ label, spec string }
	for name, tc := range map[string]struct {
		had  version // label: "-" for none
		set  string
		want version
		is   string // the custom version before
	}{
		"none":                   {version{"-", ""}, "v2", version{"-", "v2"}, ""},
		"in the spec":            {version{"-", "v1"}, "v2", version{"-", "v2"}, "v1"},
		"in the label":           {version{"v1", ""}, "v2", version{"v2", ""}, "v1"},
		"in both":                {version{"v1", "v1"}, "v2", version{"v2", "v2"}, "v1"},
		"the spec counts":        {version{"old", "v1"}, "v2", version{"v2", "v2"}, "v1"},
		"removed from the spec":  {version{"-", "v1"}, "", version{"-", ""}, "v1"},
		"removed from the label": {version{"v1", ""}, "", version{"-", ""}, "v1"},
	} {
		set := &v1beta1.SidecarSet{}
		set.Spec.CustomVersion = tc.had.spec
		if tc.had.label != "-" {
			set.Labels = map[string]string{custom: tc.had.label}
		}
		if got := revision.CustomVersion(set); got != tc.is {
			t.Errorf("%s: the custom version is %q, want %q", name, got, tc.is)
		}
		revision.SetCustomVersion(set, tc.set)
		label, ok := set.Labels[custom]
		if !ok {
			label = "-"
		}
		if got := (version{label, set.Spec.CustomVersion}); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

// Names of ControllerRevisions have a limit, and revisions that are as new come in the order of their names.
func TestNamesAndOrderOfRevisions(t *testing.T) {
	t.Parallel()
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("a", 240), UID: "uid"}}
	r, err := revision.New(set, "refit-system", 1)
	if err != nil || len(r.Name) > 253 || !strings.HasPrefix(r.Name, strings.Repeat("a", 223)+"-") || r.Labels[revision.LabelHash] != r.Name[224:] || r.Labels[v1beta1.LabelSidecarSetName] != set.Name {
		t.Errorf("%s, labels %v, %v", r.Name, r.Labels, err)
	}
	old, young := metav1.Unix(1, 0), metav1.Unix(2, 0)
	a, b, c, d := numbered("", "a", 1, nil), numbered("", "b", 1, nil), numbered("", "c", 1, nil), numbered("", "d", 0, nil)
	a.CreationTimestamp, b.CreationTimestamp, c.CreationTimestamp, d.CreationTimestamp = young, old, old, young
	var order []string
	for _, r := range revision.Sorted([]*appsv1.ControllerRevision{a, c, b, d}) {
		order = append(order, r.Name)
	}
	if diff := cmp.Diff([]string{"d", "b", "c", "a"}, order); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	set.Spec.RevisionHistoryLimit = new(int32(0))
	if expired := revision.Expired(set, []*appsv1.ControllerRevision{a, b, d}, func(string) bool { return false }); len(expired) != 2 || expired[1] != b {
		t.Errorf("with a limit of 0 the newest is kept: %v", expired)
	}
	if expired := revision.Expired(set, []*appsv1.ControllerRevision{a, b, d}, func(name string) bool { return name == "d" }); len(expired) != 1 || expired[0] != b {
		t.Errorf("one is in use, and the newest is kept: %v", expired)
	}
}

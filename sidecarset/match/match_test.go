package match_test

import (
	"maps"
	"math/rand"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/match"
)

func TestSelection(t *testing.T) {
	t.Parallel()
	app := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	team := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	for name, tc := range map[string]struct {
		spec      v1beta1.SidecarSetSpec
		namespace map[string]string
		pod       string
		want      bool
	}{
		"label":                           {v1beta1.SidecarSetSpec{Selector: app}, nil, "web", true},
		"another label":                   {v1beta1.SidecarSetSpec{Selector: app}, nil, "db", false},
		"no selector":                     {v1beta1.SidecarSetSpec{}, nil, "web", false},
		"empty selector":                  {v1beta1.SidecarSetSpec{Selector: &metav1.LabelSelector{}}, nil, "web", false},
		"namespace":                       {v1beta1.SidecarSetSpec{Selector: app, Namespace: "one"}, nil, "web", true},
		"another namespace":               {v1beta1.SidecarSetSpec{Selector: app, Namespace: "two"}, nil, "web", false},
		"namespace by label":              {v1beta1.SidecarSetSpec{Selector: app, NamespaceSelector: team}, map[string]string{"team": "a"}, "web", true},
		"namespace without the label":     {v1beta1.SidecarSetSpec{Selector: app, NamespaceSelector: team}, nil, "web", false},
		"namespace by name and not label": {v1beta1.SidecarSetSpec{Selector: app, Namespace: "one", NamespaceSelector: team}, nil, "web", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := match.NewSelector(&tc.spec)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Pod(map[string]string{"app": tc.pod}) && s.Namespace("one", tc.namespace); got != tc.want {
				t.Errorf("selected: %t", got)
			}
		})
	}
}

// OpenKruise takes these two for disjoint, and one sidecar silently replaces the other.
func TestExistsOfAnotherLabelOverlaps(t *testing.T) {
	t.Parallel()
	a := &v1beta1.SidecarSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "nginx"}}}
	b := &v1beta1.SidecarSetSpec{Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "inject", Operator: metav1.LabelSelectorOpExists},
	}}}
	if !match.Overlap(a, b) {
		t.Error("a pod with both labels is selected by both")
	}
}

// Overlap is compared with a search through all sets of labels over a few keys and values, of which one is in no selector.
func TestOverlapAgreesWithBruteForce(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewSource(7))
	worlds := everyLabels([]string{"a", "b"}, []string{"x", "y", "z"})
	namespaces := []string{"one", "two", "three"}
	overlapping := 0
	for range 3000 {
		a, b := randomSpec(random), randomSpec(random)
		sa, errA := match.NewSelector(a)
		sb, errB := match.NewSelector(b)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		found := false
		for _, pod := range worlds {
			if !sa.Pod(pod) || !sb.Pod(pod) {
				continue
			}
			for _, name := range namespaces {
				for _, set := range worlds {
					ns := maps.Clone(set)
					ns["kubernetes.io/metadata.name"] = name
					found = found || sa.Namespace(name, ns) && sb.Namespace(name, ns)
				}
			}
		}
		if found {
			overlapping++
		}
		if got := match.Overlap(a, b); got != found {
			t.Fatalf("got %t, want %t for\n%+v\n%+v", got, found, a, b)
		}
	}
	if overlapping < 300 || overlapping > 2700 {
		t.Errorf("%d of 3000 overlap: the generator tests little", overlapping)
	}
}

func everyLabels(keys, values []string) []map[string]string {
	all := []map[string]string{{}}
	for _, key := range keys {
		for _, world := range all {
			for _, value := range values {
				with := maps.Clone(world)
				with[key] = value
				all = append(all, with)
			}
		}
	}
	return all
}

// randomSpec never names the value z.
func randomSpec(random *rand.Rand) *v1beta1.SidecarSetSpec {
	spec := &v1beta1.SidecarSetSpec{Selector: randomSelector(random)}
	for len(spec.Selector.MatchExpressions)+len(spec.Selector.MatchLabels) == 0 {
		spec.Selector = randomSelector(random)
	}
	if random.Intn(3) == 0 {
		spec.Namespace = []string{"one", "two"}[random.Intn(2)]
	}
	if random.Intn(2) == 0 {
		spec.NamespaceSelector = randomSelector(random)
		if random.Intn(2) == 0 {
			spec.NamespaceSelector.MatchExpressions = append(spec.NamespaceSelector.MatchExpressions, metav1.LabelSelectorRequirement{
				Key: "kubernetes.io/metadata.name", Operator: []metav1.LabelSelectorOperator{"In", "NotIn"}[random.Intn(2)],
				Values: [][]string{{"one"}, {"two"}, {"one", "two"}}[random.Intn(3)],
			})
		}
	}
	return spec
}

func randomSelector(random *rand.Rand) *metav1.LabelSelector {
	s := &metav1.LabelSelector{}
	for _, key := range []string{"a", "b"} {
		if random.Intn(4) == 0 {
			s.MatchLabels = map[string]string{key: []string{"x", "y"}[random.Intn(2)]}
		}
		for range random.Intn(3) {
			r := metav1.LabelSelectorRequirement{Key: key}
			switch random.Intn(4) {
			case 0:
				r.Operator = metav1.LabelSelectorOpExists
			case 1:
				r.Operator = metav1.LabelSelectorOpDoesNotExist
			default:
				r.Operator = []metav1.LabelSelectorOperator{"In", "NotIn"}[random.Intn(2)]
				r.Values = [][]string{{"x"}, {"y"}, {"x", "y"}}[random.Intn(3)]
			}
			s.MatchExpressions = append(s.MatchExpressions, r)
		}
	}
	return s
}

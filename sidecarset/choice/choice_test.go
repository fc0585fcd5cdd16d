package choice_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/choice"
	"github.com/refit-project/refit/sidecarset/inject"
	"github.com/refit-project/refit/sidecarset/revision"
)

func candidate(t *testing.T, text string, pinned bool) *choice.Candidate {
	t.Helper()
	var s v1beta1.SidecarSet
	if err := yaml.UnmarshalStrict([]byte(text), &s); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	compile := func(name string) *inject.Set {
		named := s.DeepCopy()
		named.Name = s.Name + "/" + name
		set, err := inject.Compile(named, name)
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	c := &choice.Candidate{SidecarSet: &s, Latest: compile("latest")}
	if pinned {
		c.Pinned = compile("pinned")
	}
	return c
}

func TestChoice(t *testing.T) {
	t.Parallel()
	const log = "metadata: {name: log}\nspec: {%s}"
	const pin = "injectionStrategy: {revision: {customVersion: v1%s}}"
	const canary = "metadata: {name: new, annotations: {apps.kruise.io/sidecarset-canary: 'true', apps.kruise.io/sidecarset-base: log}}"
	for name, tc := range map[string]struct {
		sets    []string
		pinned  bool
		pod     choice.Subject
		want    string // names of versions, then skipped ones after a minus, and those that are kept as they are after an equals sign
		why     string // the reason of one that is skipped
		warning string
		refused string
	}{
		"latest":                              {sets: []string{fmt.Sprintf(log, "")}, want: "log/latest"},
		"pinned":                              {sets: []string{fmt.Sprintf(log, fmt.Sprintf(pin, ""))}, pinned: true, want: "log/pinned"},
		"pinned revision missing":             {sets: []string{fmt.Sprintf(log, fmt.Sprintf(pin, ""))}, want: "log/latest"},
		"pinned revision missing, Skip":       {sets: []string{fmt.Sprintf(log, fmt.Sprintf(pin, ", missingPolicy: Skip"))}, want: "-log", why: "the revision of spec.injectionStrategy.revision does not exist"},
		"pinned revision missing, Fail":       {sets: []string{fmt.Sprintf(log, fmt.Sprintf(pin, ", missingPolicy: Fail"))}, refused: "missingPolicy is Fail"},
		"partial, paused":                     {sets: []string{fmt.Sprintf(log, fmt.Sprintf(pin, ", policy: Partial")+", updateStrategy: {paused: true}")}, pinned: true, want: "log/pinned"},
		"partial, without partition":          {sets: []string{fmt.Sprintf(log, fmt.Sprintf(pin, ", policy: Partial"))}, pinned: true, want: "log/latest"},
		"partial, a number as partition":      {sets: []string{fmt.Sprintf(log, fmt.Sprintf(pin, ", policy: Partial")+", updateStrategy: {partition: 7}")}, pinned: true, want: "log/latest"},
		"partial, all kept":                   {sets: []string{fmt.Sprintf(log, fmt.Sprintf(pin, ", policy: Partial")+", updateStrategy: {partition: 100%}")}, pinned: true, want: "log/pinned"},
		"partial, not selected":               {sets: []string{fmt.Sprintf(log, fmt.Sprintf(pin, ", policy: Partial")+", updateStrategy: {selector: {matchLabels: {canary: blue}}}")}, pinned: true, want: "log/pinned"},
		"partial, a selector that is none":    {sets: []string{fmt.Sprintf(log, fmt.Sprintf(pin, ", policy: Partial")+", updateStrategy: {selector: {matchExpressions: [{key: a, operator: Like}]}}")}, pinned: true, want: "log/pinned"},
		"partial, a partition that is none":   {sets: []string{fmt.Sprintf(log, fmt.Sprintf(pin, ", policy: Partial")+", updateStrategy: {partition: most%}")}, pinned: true, want: "log/latest"},
		"always, without partition":           {sets: []string{fmt.Sprintf(log, fmt.Sprintf(pin, ", policy: Always")+", updateStrategy: {partition: 0%}")}, pinned: true, want: "log/pinned"},
		"partial, selected":                   {sets: []string{fmt.Sprintf(log, fmt.Sprintf(pin, ", policy: Partial")+", updateStrategy: {selector: {matchLabels: {canary: blue}}}")}, pod: choice.Subject{Labels: map[string]string{"canary": "blue"}}, pinned: true, want: "log/latest"},
		"canary":                              {sets: []string{fmt.Sprintf(log, ""), canary}, want: "new/latest -log", why: "replaced by the canary new"},
		"a canary without the annotation":     {sets: []string{fmt.Sprintf(log, ""), "metadata: {name: new, annotations: {apps.kruise.io/sidecarset-base: log}}"}, want: "log/latest new/latest"},
		"no canary":                           {sets: []string{fmt.Sprintf(log, ""), "metadata: {name: new, annotations: {apps.kruise.io/sidecarset-canary: 'false', apps.kruise.io/sidecarset-base: log}}"}, want: "log/latest new/latest"},
		"a canary of another":                 {sets: []string{fmt.Sprintf(log, ""), "metadata: {name: new, annotations: {apps.kruise.io/sidecarset-canary: 'true', apps.kruise.io/sidecarset-base: mesh}}"}, want: "log/latest new/latest"},
		"opted out of the canary":             {sets: []string{fmt.Sprintf(log, ""), canary + "\nspec: {injectionStrategy: {allowedPodOverrides: [OptOut]}}"}, pod: opt("-new"), want: "log/latest -new"},
		"canary without its revision":         {sets: []string{fmt.Sprintf(log, ""), canary + "\nspec: {" + fmt.Sprintf(pin, ", missingPolicy: Skip") + "}"}, want: "log/latest -new"},
		"canary without its revision, Latest": {sets: []string{fmt.Sprintf(log, ""), canary + "\nspec: {" + fmt.Sprintf(pin, "") + "}"}, want: "new/latest -log"},
		"canary without its revision, Fail":   {sets: []string{fmt.Sprintf(log, ""), canary + "\nspec: {" + fmt.Sprintf(pin, ", missingPolicy: Fail") + "}"}, refused: "missingPolicy is Fail"},
		"opted out":                           {sets: []string{fmt.Sprintf(log, "injectionStrategy: {allowedPodOverrides: [OptOut]}")}, pod: opt("false"), want: "-log", why: "the pod's annotation " + v1beta1.AnnotationSidecarInject},
		"opted out by name":                   {sets: []string{fmt.Sprintf(log, "injectionStrategy: {allowedPodOverrides: [OptOut]}")}, pod: opt("-mesh, -log"), want: "-log"},
		"opted out of another":                {sets: []string{fmt.Sprintf(log, "injectionStrategy: {allowedPodOverrides: [OptOut]}")}, pod: opt("-mesh"), want: "log/latest"},
		"opted out where that is not allowed": {sets: []string{fmt.Sprintf(log, "")}, pod: opt("false"), want: "log/latest", warning: "has no effect"},
		"a policy injects":                    {sets: []string{fmt.Sprintf(log, "injectionStrategy: {engine: Policy}")}, want: "=log"},
		"a policy injects, opted out":         {sets: []string{fmt.Sprintf(log, "injectionStrategy: {engine: Policy, allowedPodOverrides: [OptOut]}")}, pod: opt("false"), want: "=log"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var candidates []*choice.Candidate
			for _, text := range tc.sets {
				candidates = append(candidates, candidate(t, text, tc.pinned))
			}
			plan, warnings, err := choice.Choose(tc.pod, candidates)
			var refusal *inject.Refusal
			if (tc.refused == "") != (err == nil) || err != nil && (!errors.As(err, &refusal) || !strings.Contains(err.Error(), tc.refused)) {
				t.Fatalf("got %v, want %q", err, tc.refused)
			}
			var got []string
			for _, s := range plan.Sets {
				got = append(got, s.Name())
			}
			for name, why := range plan.Skipped {
				got = append(got, "-"+name)
				if tc.why != "" && why != tc.why {
					t.Errorf("%s is skipped since %q, want %q", name, why, tc.why)
				}
			}
			for _, name := range plan.Keep {
				got = append(got, "="+name)
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("got %v, want %s", got, tc.want)
			}
			if (tc.warning == "") != (len(warnings) == 0) || len(warnings) > 0 && !strings.Contains(warnings[0], tc.warning) {
				t.Errorf("warnings %v", warnings)
			}
		})
	}
}

// It would be created without its sidecars. A pinned revision is as it was.
func TestAPodIsRefusedWhereTheSidecarSetIsNotValid(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		strategy string
		pinned   bool
		want     string // of the version; empty: refused
	}{
		"the latest":                  {"", false, ""},
		"the pinned":                  {"injectionStrategy: {revision: {customVersion: v1}}", true, "log/pinned"},
		"the pinned does not exist":   {"injectionStrategy: {revision: {customVersion: v1}}", false, ""},
		"the latest is for this pod":  {"injectionStrategy: {revision: {customVersion: v1, policy: Partial}}", true, ""},
		"the latest is not for it":    {"injectionStrategy: {revision: {customVersion: v1, policy: Partial}}, updateStrategy: {paused: true}", true, "log/pinned"},
		"it is skipped, with no such": {"injectionStrategy: {revision: {customVersion: v1, missingPolicy: Skip}}", false, "-log"},
	} {
		c := candidate(t, "metadata: {name: log}\nspec: {"+tc.strategy+"}", tc.pinned)
		c.Err = errors.New("no image")
		plan, _, err := choice.Choose(choice.Subject{}, []*choice.Candidate{c})
		got := ""
		for _, s := range plan.Sets {
			got += s.Name()
		}
		for name := range plan.Skipped {
			got += "-" + name
		}
		if got != tc.want || (err != nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), "the SidecarSet is not valid: no image") {
			t.Errorf("%s: got %q, %v; want %q", name, got, err, tc.want)
		}
	}
}

func opt(value string) choice.Subject {
	return choice.Subject{Annotations: map[string]string{v1beta1.AnnotationSidecarInject: value}}
}

// OpenKruise throws a die for each pod: one that is created again changes sides.
func TestPartitionKeepsPodsOnTheirSide(t *testing.T) {
	t.Parallel()
	at := func(partition string) []string {
		c := candidate(t, "metadata: {name: log}\nspec: {injectionStrategy: {revision: {customVersion: v1, policy: Partial}}, updateStrategy: {partition: "+partition+"}}", true)
		var latest []string
		for i := range 1000 {
			key := fmt.Sprintf("shop/db-%d", i)
			plan, _, err := choice.Choose(choice.Subject{Key: key}, []*choice.Candidate{c})
			if err != nil {
				t.Fatal(err)
			}
			if plan.Sets[0].Name() == "log/latest" {
				latest = append(latest, key)
			}
		}
		return latest
	}
	most, half, again := at("70%"), at("50%"), at("70%")
	if len(most) < 250 || len(most) > 350 {
		t.Errorf("%d of 1000 pods have the latest revision at a partition of 70%%", len(most))
	}
	if !slices.Equal(most, again) {
		t.Error("another choice for the same pods")
	}
	for _, key := range most {
		if !slices.Contains(half, key) {
			t.Errorf("%s goes back when the partition is lowered", key)
		}
	}
}

// A partition of 0% keeps no pod at all, and one of 99% still lets some have the latest revision.
func TestPartitionKeepsNoMorePodsThanItSays(t *testing.T) {
	t.Parallel()
	const pods = 2000
	for partition, want := range map[string]struct{ least, most int }{"0%": {pods, pods}, "1%": {pods - 40, pods - 1}, "99%": {1, 40}, "100%": {0, 0}} {
		c := candidate(t, "metadata: {name: log}\nspec: {injectionStrategy: {revision: {customVersion: v1, policy: Partial}}, updateStrategy: {partition: "+partition+"}}", true)
		latest := 0
		for i := range pods {
			plan, _, err := choice.Choose(choice.Subject{Key: fmt.Sprintf("shop/db-%d", i)}, []*choice.Candidate{c})
			if err != nil {
				t.Fatal(err)
			}
			if plan.Sets[0].Name() == "log/latest" {
				latest++
			}
		}
		if latest < want.least || latest > want.most {
			t.Errorf("partition %s: %d of %d pods have the latest revision, want %d to %d", partition, latest, pods, want.least, want.most)
		}
	}
}

func TestInjectsLatest(t *testing.T) {
	t.Parallel()
	var set v1beta1.SidecarSet
	set.Name = "log"
	latest, err := revision.New(&set, "refit-system", 2)
	if err != nil {
		t.Fatal(err)
	}
	older := latest.DeepCopy()
	older.Name, older.Revision = "log-older", 1
	pin := func(name string) func(*v1beta1.SidecarSetInjectionStrategy) {
		return func(s *v1beta1.SidecarSetInjectionStrategy) {
			s.Revision = &v1beta1.SidecarSetInjectRevision{RevisionName: &name}
		}
	}
	for name, tc := range map[string]struct {
		change func(*v1beta1.SidecarSetInjectionStrategy)
		want   bool
	}{
		"by default":          {func(*v1beta1.SidecarSetInjectionStrategy) {}, true},
		"paused":              {func(s *v1beta1.SidecarSetInjectionStrategy) { s.Paused = true }, false},
		"by a policy":         {func(s *v1beta1.SidecarSetInjectionStrategy) { s.Engine = v1beta1.EnginePolicy }, false},
		"pinned to an older":  {pin(older.Name), false},
		"pinned to the last":  {pin(latest.Name), true},
		"pinned to a missing": {pin("log-none"), false},
	} {
		set := set.DeepCopy()
		tc.change(&set.Spec.InjectionStrategy)
		if got := choice.InjectsLatest(set, latest.Name, []*appsv1.ControllerRevision{older, latest}); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	set.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	if choice.Active(&set) || choice.InjectsLatest(&set, latest.Name, nil) {
		t.Error("a SidecarSet that is being deleted injects")
	}
}

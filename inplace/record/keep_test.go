package record_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/record"
)

// A command that follows another while its update goes on does not shorten the drain, and does not change the order.
func TestAnUpdateThatFollowsAnotherKeepsItsPromises(t *testing.T) {
	t.Parallel()
	before := func(changes ...plan.Change) *record.Record {
		r := begun(changes...)
		r.State.Refit.DrainSeconds, r.State.Refit.Order = 30, [][]string{{"app", "mesh"}}
		r.State.Refit.After = map[string][]string{"app": {"mesh"}}
		return r
	}
	image := func(image string) plan.Change { return plan.Change{Container: "app", Image: image} }
	grace := before()
	grace.Grace = &v1beta1.InPlaceUpdateSpec{GraceSeconds: 60}
	waits := map[string][]string{"app": {"mesh"}}
	both := image("app:2")
	both.Metadata = labels("new")
	kept, own := [][]string{{"app", "mesh"}, {"log"}}, [][]string{{"log"}, {"app"}}
	for name, tt := range map[string]struct {
		before     *record.Record
		unfinished bool
		change     plan.Change
		drain      int32
		order      [][]string
		after      map[string][]string
	}{
		"it has ended":                        {before: before(), change: image("app:2"), drain: 5, order: own},
		"its last container is being started": {before: before(), unfinished: true, change: image("app:2"), drain: 30, order: kept},
		"it has something to write":           {before: before(image("app:2")), change: image("app:2"), drain: 30, order: kept, after: waits},
		"of another image":                    {before: before(image("app:1")), change: image("app:2"), drain: 30, order: kept},
		"of another environment":              {before: before(both), change: image("app:2"), drain: 30, order: kept},
		"it drains for OpenKruise":            {before: grace, change: image("app:2"), drain: 60, order: kept},
	} {
		r := begun(tt.change)
		r.Keep(tt.before, tt.unfinished)
		if ours := r.State.Refit; ours.DrainSeconds != tt.drain || !cmp.Equal(ours.Order, tt.order) || !cmp.Equal(ours.After, tt.after) {
			t.Errorf("%s: drains for %d s, in the order %v, after %v", name, ours.DrainSeconds, ours.Order, ours.After)
		}
	}
	r := begun(image("app:2"))
	without := before(image("app:2"))
	without.State.Refit.Order = nil
	if r.Keep(without, false); !cmp.Equal(r.State.Refit.Order, own) {
		t.Errorf("the order %v after one without any", r.State.Refit.Order)
	}
}

// An update that OpenKruise has begun waits for the same containers, whichever of its containers is next.
func TestContainersThatOpenKruiseWaitsForAreWaitedFor(t *testing.T) {
	t.Parallel()
	r := &record.Record{State: v1beta1.InPlaceUpdateState{
		NextContainerImages: map[string]string{"log": "log:2", "app": "app:2"}, NextContainerRefMetadata: map[string]v1beta1.InPlaceUpdateMetadata{"app": labels("new")},
		PreCheckBeforeNext: &v1beta1.InPlaceUpdatePreCheckBeforeNext{ContainersRequiredReady: []string{"mesh"}},
	}}
	if diff := cmp.Diff(map[string][]string{"app": {"mesh"}, "log": {"mesh"}}, r.After()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.State.Refit = &v1beta1.InPlaceUpdateExtension{After: map[string][]string{"app": {"log"}}}
	if diff := cmp.Diff(map[string][]string{"app": {"log"}}, r.After()); diff != "" {
		t.Errorf("of Refit (-want +got):\n%s", diff)
	}
}

// OpenKruise reads one list for all that is still to be written.
func TestContainersThatAreWaitedForAreNamedOnce(t *testing.T) {
	t.Parallel()
	pod := running()
	stage := &plan.Stage{Kind: plan.StageImage, Changes: []plan.Change{{Container: "mesh", Image: "mesh:2"}, {Container: "app", Image: "app:2"}}}
	r := begun(append([]plan.Change{{Container: "log", Image: "log:2"}, {Container: "other", Image: "other:2"}}, stage.Changes...)...)
	check := r.Written(pod, stage, now).State.PreCheckBeforeNext
	if check == nil || !cmp.Equal(check.ContainersRequiredReady, []string{"app", "mesh"}) {
		t.Errorf("%+v", check)
	}
}

// What has waited for a container that is ready by now waits for the next one only.
func TestOnlyContainersThatAreNotReadyAreWaitedFor(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ready, known bool
		want         []string
	}{
		"it is ready":                {ready: true, known: true, want: []string{"log"}},
		"it is not ready":            {known: true, want: []string{"mesh"}},
		"kubelet says nothing of it": {want: []string{"mesh"}},
	} {
		pod := running()
		pod.Status.InitContainerStatuses[0].Ready = tt.ready
		if !tt.known {
			pod.Status.InitContainerStatuses = nil
		}
		r := begun(plan.Change{Container: "app", Image: "app:2"}, plan.Change{Container: "log", Image: "log:2"})
		r.State.Refit.After = map[string][]string{"app": {"mesh"}}
		next := r.Written(pod, &plan.Stage{Kind: plan.StageImage, Changes: []plan.Change{{Container: "log", Image: "log:2"}}}, now)
		want := map[string][]string{"app": tt.want}
		if diff := cmp.Diff(want, next.After()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if check := next.State.PreCheckBeforeNext; check == nil || !cmp.Equal(check.ContainersRequiredReady, tt.want) {
			t.Errorf("%s: for OpenKruise %+v", name, check)
		}
	}
}

// A command that is cancelled takes back what it has asked for, and nothing that another has asked for since.
func TestOnlyWhatACommandHasAskedForIsTakenBack(t *testing.T) {
	t.Parallel()
	change := func(image, tier, config string) plan.Change {
		return plan.Change{Container: "app", Image: image, Metadata: v1beta1.InPlaceUpdateMetadata{
			Labels: map[string]string{"tier": tier}, Annotations: map[string]string{"config": config},
		}}
	}
	kept := begun(change("app:2", "new", "two"), plan.Change{Container: "log", Resources: new(cpu("1"))})
	kept.State.Refit.After = map[string][]string{"app": {"mesh"}, "log": {"mesh"}}
	before := copyOf(t, kept)
	for name, tt := range map[string]struct {
		changes     plan.Changes
		image       string
		metadata    *v1beta1.InPlaceUpdateMetadata
		label, gone bool // are left
		waits       bool
	}{
		"nothing": {plan.Changes{}, "app:2", &v1beta1.InPlaceUpdateMetadata{
			Labels: map[string]string{"tier": "new"}, Annotations: map[string]string{"config": "two"},
		}, true, true, true},
		"all of it": {plan.Changes{
			Containers: []plan.Change{change("app:2", "new", "two")}, Labels: map[string]*string{"team": new("shop")}, Annotations: map[string]*string{"gone": nil},
		}, "", nil, false, false, false},
		"other values": {plan.Changes{
			Containers: []plan.Change{change("app:3", "old", "three")}, Labels: map[string]*string{"team": new("bar")}, Annotations: map[string]*string{"gone": new("x")},
		}, "app:2", &v1beta1.InPlaceUpdateMetadata{
			Labels: map[string]string{"tier": "new"}, Annotations: map[string]string{"config": "two"},
		}, true, true, true},
		"a removal of what is set": {plan.Changes{Labels: map[string]*string{"team": nil, "tier": nil}}, "app:2", &v1beta1.InPlaceUpdateMetadata{Labels: map[string]string{"tier": "new"}, Annotations: map[string]string{"config": "two"}}, true, true, true},
		"the label that it reads":  {plan.Changes{Labels: map[string]*string{"tier": new("new")}}, "app:2", &v1beta1.InPlaceUpdateMetadata{Annotations: map[string]string{"config": "two"}}, true, true, true},
		"without an image of its own": {plan.Changes{Containers: []plan.Change{{Container: "app"}, {Container: "log"}}}, "app:2", &v1beta1.InPlaceUpdateMetadata{
			Labels: map[string]string{"tier": "new"}, Annotations: map[string]string{"config": "two"},
		}, true, true, true},
	} {
		left := kept.Without(tt.changes)
		if got := left.State.NextContainerImages["app"]; got != tt.image {
			t.Errorf("%s: image %q is left", name, got)
		}
		var metadata *v1beta1.InPlaceUpdateMetadata
		if of, ok := left.State.NextContainerRefMetadata["app"]; ok {
			metadata = &of
		}
		if diff := cmp.Diff(tt.metadata, metadata, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		_, label := left.State.Refit.Labels["team"]
		_, gone := left.State.Refit.Annotations["gone"]
		if label != tt.label || gone != tt.gone {
			t.Errorf("%s: label %t and annotation %t are left", name, label, gone)
		}
		if _, waits := left.After()["app"]; waits != tt.waits {
			t.Errorf("%s: the container waits: %t", name, waits)
		}
	}
	if diff := cmp.Diff(before, copyOf(t, kept)); diff != "" {
		t.Errorf("the record itself was changed (-want +got):\n%s", diff)
	}
}

// All readable records show which updates of a pod are in progress.
func TestAllRecordsThatCanBeReadAreFound(t *testing.T) {
	t.Parallel()
	const own, sets = v1beta1.AnnotationInPlaceUpdateState, v1beta1.AnnotationSidecarSetInPlaceUpdateState
	many := make([]string, 257)
	for i := range many {
		many[i] = fmt.Sprintf(`"s%d":{"revision":"s"}`, i)
	}
	most := "{" + strings.Join(many[:256], ",") + "}"
	for name, tt := range map[string]struct {
		annotations map[string]string
		want        int
	}{
		"none":                       {nil, 0},
		"its own":                    {map[string]string{own: `{"revision":"o"}`}, 1},
		"and records of SidecarSets": {map[string]string{own: `{"revision":"o"}`, sets: `{"log":{"revision":"l"},"mesh":{"revision":"m"}}`}, 3},
		"its own is unreadable":      {map[string]string{own: `{`, sets: `{"log":{"revision":"l"}}`}, 1},
		"one of them is":             {map[string]string{own: `{"revision":"o"}`, sets: `{"log":1,"mesh":{"revision":"m"}}`}, 2},
		"they are":                   {map[string]string{own: `{"revision":"o"}`, sets: `{`}, 1},
		"what follows it is":         {map[string]string{own: `{"revision":"o"}`, v1beta1.AnnotationInPlaceUpdateGrace: `{`}, 0},
		"as many as may be":          {map[string]string{sets: most}, 256},
		"more than may be":           {map[string]string{sets: "{" + strings.Join(many, ",") + "}"}, 0},
	} {
		all := record.All(podWith(tt.annotations))
		if len(all) != tt.want {
			t.Errorf("%s: %d", name, len(all))
		}
		for _, one := range all {
			if one == nil || one.State.Revision == "" || (one.State.Revision == "o") != (one.SidecarSet == "") {
				t.Errorf("%s: %+v", name, one)
			}
		}
	}
	pod := podWith(map[string]string{own: `{"revision":"o"}`, v1beta1.AnnotationInPlaceUpdateGrace: `{`})
	if got, err := record.Read(pod); err == nil {
		t.Errorf("what OpenKruise is to apply is lost: %+v", got)
	}
}

// An update whose last container was written a minute ago goes on, however long ago it was begun.
func TestAnUpdateIsAsOldAsItsLastStep(t *testing.T) {
	t.Parallel()
	at := func(ago time.Duration) metav1.Time { return metav1.NewTime(now.Add(-ago)) }
	r := &record.Record{State: v1beta1.InPlaceUpdateState{UpdateTimestamp: at(time.Hour)}}
	if got := r.Changed(); !got.Equal(at(time.Hour).Time) {
		t.Errorf("begun: %s", got)
	}
	r.State.ContainerBatchesRecord = []v1beta1.InPlaceUpdateContainerBatch{{Timestamp: at(time.Minute)}, {Timestamp: at(2 * time.Minute)}}
	if got := r.Changed(); !got.Equal(at(time.Minute).Time) {
		t.Errorf("gone on: %s", got)
	}
}

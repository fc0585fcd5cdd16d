package image_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
)

var now = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

// Each field that a reader of the status looks at is news; bytes within a fifth are not.
func TestNewsIsWhatAReaderWouldSee(t *testing.T) {
	t.Parallel()
	at, later := metav1.NewTime(now), metav1.NewTime(now.Add(time.Second))
	base := func() v1beta1.NodeImageStatus {
		return v1beta1.NodeImageStatus{Desired: 1, Pulling: 1, ImageStatuses: map[string]v1beta1.ImageStatus{"game": {Tags: []v1beta1.ImageTagStatus{{
			Tag: "v1", Phase: v1beta1.ImagePhasePulling, Progress: 45, Version: 1, StartTime: &at, CompletionTime: &at, Message: "m", ImageID: "i", PulledBytes: 45,
			Namespaces: []v1beta1.ImageNamespaceStatus{{
				Namespace: "shop", Phase: v1beta1.ImagePhaseFailed, Version: 1, Message: "m", StartTime: &at, CompletionTime: &at,
				Jobs: []v1beta1.ImageJobStatus{{UID: "u", Version: 1, Phase: v1beta1.ImagePhaseFailed}},
			}},
		}}}}}
	}
	tag := func(change func(*v1beta1.ImageTagStatus)) func(*v1beta1.NodeImageStatus) {
		return func(s *v1beta1.NodeImageStatus) { change(&s.ImageStatuses["game"].Tags[0]) }
	}
	namespace := func(change func(*v1beta1.ImageNamespaceStatus)) func(*v1beta1.NodeImageStatus) {
		return func(s *v1beta1.NodeImageStatus) { change(&s.ImageStatuses["game"].Tags[0].Namespaces[0]) }
	}
	for name, tt := range map[string]struct {
		change func(*v1beta1.NodeImageStatus)
		quiet  bool
	}{
		"nothing":       {func(*v1beta1.NodeImageStatus) {}, true},
		"some bytes":    {tag(func(s *v1beta1.ImageTagStatus) { s.Progress, s.PulledBytes = 59, 59 }), true},
		"a fifth":       {tag(func(s *v1beta1.ImageTagStatus) { s.Progress = 60 }), false},
		"desired":       {func(s *v1beta1.NodeImageStatus) { s.Desired++ }, false},
		"succeeded":     {func(s *v1beta1.NodeImageStatus) { s.Succeeded++ }, false},
		"failed":        {func(s *v1beta1.NodeImageStatus) { s.Failed++ }, false},
		"pulling":       {func(s *v1beta1.NodeImageStatus) { s.Pulling++ }, false},
		"waiting":       {func(s *v1beta1.NodeImageStatus) { s.Waiting++ }, false},
		"another image": {func(s *v1beta1.NodeImageStatus) { s.ImageStatuses["b"] = v1beta1.ImageStatus{} }, false},
		"its name": {func(s *v1beta1.NodeImageStatus) {
			s.ImageStatuses = map[string]v1beta1.ImageStatus{"b": s.ImageStatuses["game"]}
		}, false},
		"tag":                               {tag(func(s *v1beta1.ImageTagStatus) { s.Tag = "v2" }), false},
		"phase":                             {tag(func(s *v1beta1.ImageTagStatus) { s.Phase = v1beta1.ImagePhaseWaiting }), false},
		"version":                           {tag(func(s *v1beta1.ImageTagStatus) { s.Version++ }), false},
		"message":                           {tag(func(s *v1beta1.ImageTagStatus) { s.Message = "n" }), false},
		"image ID":                          {tag(func(s *v1beta1.ImageTagStatus) { s.ImageID = "j" }), false},
		"start time":                        {tag(func(s *v1beta1.ImageTagStatus) { s.StartTime = &later }), false},
		"completion time":                   {tag(func(s *v1beta1.ImageTagStatus) { s.CompletionTime = nil }), false},
		"its image is gone":                 {func(s *v1beta1.NodeImageStatus) { s.ImageStatuses = nil }, false},
		"a namespace is gone":               {tag(func(s *v1beta1.ImageTagStatus) { s.Namespaces = nil }), false},
		"namespace":                         {namespace(func(s *v1beta1.ImageNamespaceStatus) { s.Namespace = "bar" }), false},
		"phase for a namespace":             {namespace(func(s *v1beta1.ImageNamespaceStatus) { s.Phase = v1beta1.ImagePhaseSucceeded }), false},
		"version for a namespace":           {namespace(func(s *v1beta1.ImageNamespaceStatus) { s.Version++ }), false},
		"message for a namespace":           {namespace(func(s *v1beta1.ImageNamespaceStatus) { s.Message = "n" }), false},
		"a secret was used for a namespace": {namespace(func(s *v1beta1.ImageNamespaceStatus) { s.WithSecret = true }), false},
		"start time for a namespace":        {namespace(func(s *v1beta1.ImageNamespaceStatus) { s.StartTime = &later }), false},
		"completion time for a namespace":   {namespace(func(s *v1beta1.ImageNamespaceStatus) { s.CompletionTime = nil }), false},
		"outcome for a job":                 {namespace(func(s *v1beta1.ImageNamespaceStatus) { s.Jobs[0].Phase = v1beta1.ImagePhaseSucceeded }), false},
	} {
		is := base()
		if tt.change(&is); image.News(base(), is) == tt.quiet {
			t.Errorf("%s: news %t", name, !tt.quiet)
		}
	}
}

func TestPercentIsBetweenZeroAndAHundred(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		state image.State
		want  int32
	}{
		{image.State{Phase: v1beta1.ImagePhasePulling, Pulled: 1, Total: 0}, 0},
		{image.State{Phase: v1beta1.ImagePhasePulling, Pulled: -5, Total: 10}, 0},
		{image.State{Phase: v1beta1.ImagePhasePulling, Pulled: 1, Total: 1}, 99},
		{image.State{Phase: v1beta1.ImagePhasePulling, Pulled: 99, Total: 100}, 99},
		{image.State{Phase: v1beta1.ImagePhaseWaiting, Pulled: 5, Total: 10}, 0},
		{image.State{Phase: v1beta1.ImagePhaseFailed, Pulled: 5, Total: 10}, 0},
		{image.State{Phase: v1beta1.ImagePhaseSucceeded}, 100},
	} {
		if got := tt.state.Percent(); got != tt.want {
			t.Errorf("%+v: %d %%, want %d", tt.state, got, tt.want)
		}
	}
}

// A message of the allowed length is whole; a longer one says that something is missing.
func TestMessageIsCutAtItsBound(t *testing.T) {
	t.Parallel()
	say := func(n int) string {
		states := map[image.Target]image.State{target("a", "v2"): {Phase: v1beta1.ImagePhaseFailed, Message: strings.Repeat("x", n)}}
		return image.Status(spec(), states).ImageStatuses["a"].Tags[0].Message
	}
	if got := say(512); got != strings.Repeat("x", 512) {
		t.Errorf("%d bytes", len(got))
	}
	if got := say(513); got != strings.Repeat("x", 512)+"…" {
		t.Errorf("%d bytes", len(got))
	}
	for text, want := range map[string]string{
		strings.Repeat(">", 300):       strings.Repeat(">", 85) + "…",
		strings.Repeat("&", 300):       strings.Repeat("&", 85) + "…",
		strings.Repeat("\n", 300):      strings.Repeat("\n", 85) + "…",
		strings.Repeat("\u2028", 300):  strings.Repeat("\u2028", 85) + "…",
		strings.Repeat("\u2029", 300):  strings.Repeat("\u2029", 85) + "…",
		strings.Repeat(`"`, 300):       strings.Repeat(`"`, 256) + "…", // two bytes each
		strings.Repeat(`\`, 300):       strings.Repeat(`\`, 256) + "…",
		strings.Repeat(" ", 512):       strings.Repeat(" ", 512),
		strings.Repeat("<", 300):       strings.Repeat("<", 85) + "…",        // six bytes each in JSON
		"x" + strings.Repeat("é", 300): "x" + strings.Repeat("é", 255) + "…", // the bound is within a rune
		strings.Repeat("\x80", 513):    "\uFFFD",                             // no text at all
	} {
		states := map[image.Target]image.State{target("a", "v2"): {Phase: v1beta1.ImagePhaseFailed, Message: text}}
		if got := image.Status(spec(), states).ImageStatuses["a"].Tags[0].Message; got != want {
			t.Errorf("%q is cut to %q", text, got)
		}
	}
}

// A job that asked for a pull that has ended keeps its outcome when another job asks for another version.
func TestAJobKeepsTheOutcomeOfThePullThatItAskedFor(t *testing.T) {
	t.Parallel()
	failed := image.State{Phase: v1beta1.ImagePhaseFailed, Version: 3, Message: "404", WithSecret: true}
	succeeded := image.State{Phase: v1beta1.ImagePhaseSucceeded, Version: 3}
	pulling := image.State{Phase: v1beta1.ImagePhasePulling, Version: 3}
	earlier := image.Outcome{Version: 2, Phase: v1beta1.ImagePhaseSucceeded}
	pullingAgain, failedAgain := pulling, failed
	pullingAgain.Earlier = map[types.UID]image.Outcome{"u": earlier}
	failedAgain.Earlier = pullingAgain.Earlier
	for name, tt := range map[string]struct {
		from  image.State
		asked int64
		want  map[types.UID]image.Outcome
	}{
		"it failed":                             {failed, 3, map[types.UID]image.Outcome{"u": {Version: 3, Phase: v1beta1.ImagePhaseFailed, Message: "404"}}},
		"it succeeded":                          {succeeded, 2, map[types.UID]image.Outcome{"u": {Version: 3, Phase: v1beta1.ImagePhaseSucceeded}}},
		"it has not ended":                      {pulling, 3, nil},
		"the job asked for the next":            {failed, 4, nil},
		"it ended before another":               {pullingAgain, 2, map[types.UID]image.Outcome{"u": earlier}},
		"it ended before another that has, too": {failedAgain, 2, map[types.UID]image.Outcome{"u": earlier}},
		"it is another than ended before":       {pullingAgain, 3, nil},
	} {
		next := tt.from.Next(image.Want{Version: 5, Jobs: map[types.UID]int64{"u": tt.asked}})
		want := image.State{Phase: v1beta1.ImagePhaseWaiting, Version: 5, WithSecret: tt.from.WithSecret, Earlier: tt.want}
		if diff := cmp.Diff(want, next); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The status is where a daemon that is started again finds it.
func TestTheOutcomeForAJobIsKnownAfterARestart(t *testing.T) {
	t.Parallel()
	object := v1beta1.NodeImageSpec{Images: map[string]v1beta1.ImageSpec{"game": {Tags: []v1beta1.ImageTagSpec{{
		Tag: "v1", OwnerReferences: []corev1.ObjectReference{{Namespace: "shop", Name: "j"}},
		Namespaces: []v1beta1.ImageNamespaceSpec{{Namespace: "bar", Version: 1}, {
			Namespace: "shop", Version: 4, Jobs: []v1beta1.ImageJobVersion{{UID: "kept", Version: 2}, {UID: "asked-again", Version: 4}},
		}},
	}}}}}
	want := image.Wanted(object)[0]
	if want.Version != 4 || want.Jobs["kept"] != 2 || want.Jobs["asked-again"] != 4 {
		t.Fatalf("%+v", want)
	}
	outcome := image.Outcome{Version: 2, Phase: v1beta1.ImagePhaseFailed, Message: "404"}
	state := image.State{Phase: v1beta1.ImagePhasePulling, Version: 4, Pulled: 5, Total: 10, Earlier: map[types.UID]image.Outcome{
		"kept": outcome, "asked-again": outcome, "gone": outcome,
	}}
	status := image.Status(object, map[image.Target]image.State{want.Target: state})
	state.Earlier = map[types.UID]image.Outcome{"kept": outcome}
	known, ok := image.Known(&status, want)
	if diff := cmp.Diff(state, known); diff != "" || !ok {
		t.Errorf("known %t (-want +got):\n%s", ok, diff)
	}
}

// A tag is as far as the pull of it that is furthest from its end, and has been pulled for as long as the longest.
func TestATagSumsUpThePullsForItsNamespaces(t *testing.T) {
	t.Parallel()
	object := v1beta1.NodeImageSpec{Images: map[string]v1beta1.ImageSpec{"game": {Tags: []v1beta1.ImageTagSpec{{Tag: "v1", OwnerReferences: []corev1.ObjectReference{
		{Namespace: "a", Name: "j"}, {Namespace: "b", Name: "k"},
	}}}}}}
	at := func(seconds time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(seconds * time.Second)} }
	ended := func(phase v1beta1.ImagePullPhase, message string, started, completed time.Duration) image.State {
		return image.State{Phase: phase, Message: message, Started: at(started).Time, Completed: at(completed).Time}
	}
	early := ended(v1beta1.ImagePhaseFailed, "early", 1, 2)
	late := ended(v1beta1.ImagePhaseFailed, "late", 3, 4)
	pulling := image.State{Phase: v1beta1.ImagePhasePulling, Message: "pulling", Started: at(5).Time}
	waiting := image.State{Phase: v1beta1.ImagePhaseWaiting, Message: "waiting"}
	for name, tt := range map[string]struct {
		a, b               image.State
		message            string
		started, completed *metav1.Time
	}{
		"both have ended":           {early, late, "early", at(1), at(4)},
		"the later one first":       {late, early, "late", at(1), at(4)},
		"one is being pulled":       {early, pulling, "pulling", at(1), nil},
		"and is the first":          {pulling, early, "pulling", at(1), nil},
		"one waits":                 {waiting, early, "waiting", at(1), nil},
		"one waits, one is pulled":  {pulling, waiting, "pulling", at(5), nil},
		"one failed, one succeeded": {early, ended(v1beta1.ImagePhaseSucceeded, "pulled", 1, 3), "early", at(1), at(3)},
	} {
		states := map[image.Target]image.State{}
		for i, want := range image.Wanted(object) {
			states[want.Target] = []image.State{tt.a, tt.b}[i]
		}
		got := image.Status(object, states).ImageStatuses["game"].Tags[0]
		if got.Message != tt.message || !got.StartTime.Equal(tt.started) || !got.CompletionTime.Equal(tt.completed) {
			t.Errorf("%s: %q from %s to %s", name, got.Message, got.StartTime, got.CompletionTime)
		}
	}
}

// What a daemon has reported before it was started again is reported as it was, to each namespace.
func TestFailureIsKnownAfterARestart(t *testing.T) {
	t.Parallel()
	object := v1beta1.NodeImageSpec{Images: map[string]v1beta1.ImageSpec{"game": {Tags: []v1beta1.ImageTagSpec{{Tag: "v1", OwnerReferences: []corev1.ObjectReference{
		{Namespace: "shop", Name: "j"}, {Namespace: "bar", Name: "k"}, {Namespace: "shop", Name: "l"},
	}}}}}}
	wants := image.Wanted(object)
	if len(wants) != 2 || strings.Join(wants[0].Owners, " ") != "bar/k" || strings.Join(wants[1].Owners, " ") != "shop/j shop/l" {
		t.Fatalf("%+v", wants)
	}
	failed := image.State{Phase: v1beta1.ImagePhaseFailed, Message: "404", Started: now, Completed: now.Add(time.Minute)}
	pulled := image.State{Phase: v1beta1.ImagePhaseSucceeded, ImageID: "sha256:1", Started: now, Completed: now.Add(time.Second), WithSecret: true}
	status := image.Status(object, map[image.Target]image.State{wants[0].Target: failed, wants[1].Target: pulled})
	if status.Failed != 1 || status.Desired != 1 || status.ImageStatuses["game"].Tags[0].Message != "404" {
		t.Errorf("%+v", status)
	}
	for i, want := range []image.State{failed, pulled} {
		known, ok := image.Known(&status, wants[i])
		if diff := cmp.Diff(want, known); diff != "" || !ok {
			t.Errorf("known %t (-want +got):\n%s", ok, diff)
		}
	}
	wants[0].Version++
	if known, _ := image.Known(&status, wants[0]); known.Version == wants[0].Version {
		t.Error("another version is known")
	}
}

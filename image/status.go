package image

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
)

// Status returns the status of a NodeImage whose pulls have these states.
func Status(spec v1beta1.NodeImageSpec, states map[Target]State) v1beta1.NodeImageStatus {
	wants := Wanted(spec)
	pulls := map[string]int{}
	for i := range wants {
		pulls[wants[i].Namespace]++
	}
	status := v1beta1.NodeImageStatus{}
	at := map[Reference]int{}
	for _, want := range wants {
		state, ok := states[want.Target]
		if !ok {
			state.Phase = v1beta1.ImagePhaseWaiting
		}
		// Each message is stored for its namespace, and in the summary.
		state.Message = clip(state.Message, min(maxMessage, MaxMessages/(2*len(wants)), maxMessages/(2*pulls[want.Namespace])))
		if status.ImageStatuses == nil {
			status.ImageStatuses = map[string]v1beta1.ImageStatus{}
		}
		image := status.ImageStatuses[want.Repository]
		i, ok := at[want.Reference]
		if !ok {
			i = len(image.Tags)
			at[want.Reference] = i
			image.Tags = append(image.Tags, v1beta1.ImageTagStatus{Tag: want.Tag, Version: TagSpec(&spec, want.Reference).Version})
		}
		add(&image.Tags[i], want, state)
		status.ImageStatuses[want.Repository] = image
	}
	for _, image := range status.ImageStatuses {
		for i := range image.Tags {
			count(&status, image.Tags[i].Phase)
		}
	}
	return status
}

func count(status *v1beta1.NodeImageStatus, phase v1beta1.ImagePullPhase) {
	status.Desired++
	switch phase {
	case v1beta1.ImagePhaseSucceeded:
		status.Succeeded++
	case v1beta1.ImagePhaseFailed:
		status.Failed++
	case v1beta1.ImagePhasePulling:
		status.Pulling++
	case v1beta1.ImagePhaseWaiting:
		status.Waiting++
	}
}

// foremost orders phases. The phase of a tag is the first of the phases of its pulls.
var foremost = map[v1beta1.ImagePullPhase]int{
	v1beta1.ImagePhasePulling: 1, v1beta1.ImagePhaseWaiting: 2, v1beta1.ImagePhaseFailed: 3, v1beta1.ImagePhaseSucceeded: 4,
}

// add adds the pull for a namespace to the status of its tag, which summarizes the pulls.
func add(tag *v1beta1.ImageTagStatus, want Want, state State) {
	first := tag.Phase == ""
	if first || foremost[state.Phase] < foremost[tag.Phase] {
		tag.Phase, tag.Message, tag.Progress = state.Phase, state.Message, state.Percent()
		tag.PulledBytes, tag.TotalBytes = state.Pulled, state.Total
	}
	started, completed := seconds(state.Started), seconds(state.Completed)
	if started != nil && (tag.StartTime == nil || started.Before(tag.StartTime)) {
		tag.StartTime = started
	}
	switch ended := tag.CompletionTime != nil; {
	case first || completed == nil:
		tag.CompletionTime = completed
	case ended && tag.CompletionTime.Before(completed):
		tag.CompletionTime = completed
	}
	if state.ImageID != "" {
		tag.ImageID = want.Repository + "@" + state.ImageID
	}
	if want.Namespace == "" {
		return
	}
	is := v1beta1.ImageNamespaceStatus{
		Namespace: want.Namespace, Phase: state.Phase, Version: want.Version, StartTime: started, CompletionTime: completed,
		Message: state.Message, WithSecret: state.WithSecret,
	}
	for _, uid := range slices.Sorted(maps.Keys(state.Earlier)) {
		if asked, wanted := want.Jobs[uid]; wanted && state.Earlier[uid].Version >= asked {
			o := state.Earlier[uid]
			is.Jobs = append(is.Jobs, v1beta1.ImageJobStatus{UID: uid, Version: o.Version, Phase: o.Phase, Message: clip(o.Message, maxEarlier)})
		}
	}
	tag.Namespaces = append(tag.Namespaces, is)
	slices.SortFunc(tag.Namespaces, func(a, b v1beta1.ImageNamespaceStatus) int { return cmp.Compare(a.Namespace, b.Namespace) })
}

// seconds truncates a time to the resolution of the API.
func seconds(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: time.Unix(t.Unix(), 0).UTC()}
}

// TagStatus returns the status of a tag, or nil if there is none.
func TagStatus(status *v1beta1.NodeImageStatus, reference Reference) *v1beta1.ImageTagStatus {
	tags := status.ImageStatuses[reference.Repository].Tags
	for i := range tags {
		if tags[i].Tag == reference.Tag {
			return &tags[i]
		}
	}
	return nil
}

// NamespaceStatus returns the status of the pull of a tag for a namespace, or nil if there is none. The status that a
// kruise-daemon writes, or that OpenKruise's CRD keeps, applies to all namespaces.
func NamespaceStatus(said *v1beta1.ImageTagStatus, namespace string) *v1beta1.ImageNamespaceStatus {
	if said == nil {
		return nil
	}
	for i := range said.Namespaces {
		if said.Namespaces[i].Namespace == namespace {
			return &said.Namespaces[i]
		}
	}
	if len(said.Namespaces) > 0 {
		return nil
	}
	return &v1beta1.ImageNamespaceStatus{
		Namespace: namespace, Phase: said.Phase, Version: said.Version, StartTime: said.StartTime, CompletionTime: said.CompletionTime, Message: said.Message,
	}
}

// Known returns the state of a pull from before the daemon started, according to the status. Its version may differ
// from the wanted one.
func Known(status *v1beta1.NodeImageStatus, want Want) (State, bool) {
	tag := TagStatus(status, want.Reference)
	said := NamespaceStatus(tag, want.Namespace)
	if said == nil {
		return State{}, false
	}
	state := State{Phase: said.Phase, Version: said.Version, Message: said.Message, WithSecret: said.WithSecret}
	if said.Phase == tag.Phase {
		state.Pulled, state.Total = tag.PulledBytes, tag.TotalBytes
	}
	if i := strings.LastIndexByte(tag.ImageID, '@'); i >= 0 && state.Phase == v1beta1.ImagePhaseSucceeded {
		state.ImageID = tag.ImageID[i+1:]
	}
	if said.StartTime != nil {
		state.Started = said.StartTime.Time
	}
	if said.CompletionTime != nil {
		state.Completed = said.CompletionTime.Time
	}
	for _, job := range said.Jobs {
		if state.Earlier == nil {
			state.Earlier = map[types.UID]Outcome{}
		}
		state.Earlier[job.UID] = Outcome{Version: job.Version, Phase: job.Phase, Message: job.Message}
	}
	return state, true
}

// progressSteps limits how often the status is written because of progress: once per this many percent.
const progressSteps = 20

// News reports whether the status b has to be written although a is stored: something other than the number of bytes
// has changed, or a pull has passed another step of its progress.
func News(a, b v1beta1.NodeImageStatus) bool {
	if a.Desired != b.Desired || a.Succeeded != b.Succeeded || a.Failed != b.Failed || a.Pulling != b.Pulling ||
		a.Waiting != b.Waiting || len(a.ImageStatuses) != len(b.ImageStatuses) {
		return true
	}
	for name, is := range b.ImageStatuses {
		was, ok := a.ImageStatuses[name]
		if !ok || !slices.EqualFunc(was.Tags, is.Tags, sameNews) {
			return true
		}
	}
	return false
}

func sameNews(a, b v1beta1.ImageTagStatus) bool {
	return a.Tag == b.Tag && a.Phase == b.Phase && a.Version == b.Version && a.Message == b.Message && a.ImageID == b.ImageID &&
		a.StartTime.Equal(b.StartTime) && a.CompletionTime.Equal(b.CompletionTime) &&
		a.Progress/progressSteps == b.Progress/progressSteps && slices.EqualFunc(a.Namespaces, b.Namespaces, sameNewsOfNamespace)
}

func sameNewsOfNamespace(a, b v1beta1.ImageNamespaceStatus) bool {
	return a.Namespace == b.Namespace && a.Phase == b.Phase && a.Version == b.Version && a.Message == b.Message && a.WithSecret == b.WithSecret &&
		a.StartTime.Equal(b.StartTime) && a.CompletionTime.Equal(b.CompletionTime) && slices.Equal(a.Jobs, b.Jobs)
}

package image

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// Status is what a NodeImage's status says when its pulls are in these states.
func Status(spec v1beta1.NodeImageSpec, states map[Reference]State) v1beta1.NodeImageStatus {
	status := v1beta1.NodeImageStatus{}
	for _, want := range Wanted(spec) {
		state, ok := states[want.Reference]
		if !ok {
			state.Phase = v1beta1.ImagePhaseWaiting
		}
		status.Desired++
		switch state.Phase {
		case v1beta1.ImagePhaseSucceeded:
			status.Succeeded++
		case v1beta1.ImagePhaseFailed:
			status.Failed++
		case v1beta1.ImagePhasePulling:
			status.Pulling++
		case v1beta1.ImagePhaseWaiting:
			status.Waiting++
		}
		if status.ImageStatuses == nil {
			status.ImageStatuses = map[string]v1beta1.ImageStatus{}
		}
		image := status.ImageStatuses[want.Repository]
		image.Tags = append(image.Tags, tagStatus(want, state))
		status.ImageStatuses[want.Repository] = image
	}
	return status
}

func tagStatus(want Want, state State) v1beta1.ImageTagStatus {
	status := v1beta1.ImageTagStatus{
		Tag: want.Tag, Phase: state.Phase, Progress: state.Percent(), Version: want.Version,
		StartTime: seconds(state.Started), CompletionTime: seconds(state.Completed),
		Message: clip(state.Message), PulledBytes: state.Pulled, TotalBytes: state.Total,
	}
	if state.ImageID != "" {
		status.ImageID = want.Repository + "@" + state.ImageID
	}
	return status
}

// seconds is the resolution of times in the API.
func seconds(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: time.Unix(t.Unix(), 0).UTC()}
}

// TagStatus finds a pull in a status; nil if the status says nothing of it.
func TagStatus(status *v1beta1.NodeImageStatus, reference Reference) *v1beta1.ImageTagStatus {
	image, ok := status.ImageStatuses[reference.Repository]
	if !ok {
		return nil
	}
	for i := range image.Tags {
		if image.Tags[i].Tag == reference.Tag {
			return &image.Tags[i]
		}
	}
	return nil
}

// Known is the state of a pull that has ended before the daemon started, as the status says.
func Known(status *v1beta1.NodeImageStatus, want Want) (State, bool) {
	said := TagStatus(status, want.Reference)
	if said == nil || said.Version != want.Version {
		return State{}, false
	}
	state := State{Phase: said.Phase, Message: said.Message, Pulled: said.PulledBytes, Total: said.TotalBytes}
	if i := strings.LastIndexByte(said.ImageID, '@'); i >= 0 {
		state.ImageID = said.ImageID[i+1:]
	}
	if said.StartTime != nil {
		state.Started = said.StartTime.Time
	}
	if said.CompletionTime != nil {
		state.Completed = said.CompletionTime.Time
	}
	return state, state.Ended()
}

// progressSteps bounds how often the status is written because bytes have come: once for each so many percent.
const progressSteps = 20

// News reports whether the status b has to be written although a has been: something other than the number of bytes
// has changed, or a pull has passed another fifth of its bytes.
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
		a.Progress/progressSteps == b.Progress/progressSteps
}

package image

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
)

// State is the state of a pull.
type State struct {
	Phase              v1beta1.ImagePullPhase
	Version            int64     // of the Want
	Started, Completed time.Time // zero means not yet
	ImageID            string
	Message            string
	Pulled, Total      int64 // bytes; zero if the runtime does not report them
	// WithSecret says that the image was pulled with a secret of the namespace, in this version or an earlier one.
	WithSecret bool
	// Present says that the node had the image, and the registry was not asked. It is only known for pulls since the
	// program started.
	Present bool
	// Earlier holds outcomes of earlier versions, for jobs that requested these.
	Earlier map[types.UID]Outcome
}

// Outcome is the outcome of a pull for a job.
type Outcome struct {
	Version int64
	Phase   v1beta1.ImagePullPhase
	Message string
}

// Ended reports whether the pull of this version has ended.
func (s *State) Ended() bool {
	return s.Phase == v1beta1.ImagePhaseSucceeded || s.Phase == v1beta1.ImagePhaseFailed
}

// Next returns the state in which the pull of another version begins. If the present version has ended, it is recorded
// as the outcome for the jobs that requested it.
func (s *State) Next(want Want) State {
	next := State{Phase: v1beta1.ImagePhaseWaiting, Version: want.Version, WithSecret: s.WithSecret}
	for uid, asked := range want.Jobs {
		outcome, known := s.Earlier[uid]
		if !known && s.Ended() {
			outcome, known = Outcome{Version: s.Version, Phase: s.Phase, Message: clip(s.Message, maxEarlier)}, true
		}
		if known && outcome.Version >= asked {
			if next.Earlier == nil {
				next.Earlier = map[types.UID]Outcome{}
			}
			next.Earlier[uid] = outcome
		}
	}
	return next
}

// Percent returns the percentage of pulled bytes; 100 if the pull has succeeded, and less before.
func (s *State) Percent() int32 {
	switch {
	case s.Phase == v1beta1.ImagePhaseSucceeded:
		return 100
	case s.Phase != v1beta1.ImagePhasePulling || s.Total <= 0:
		return 0
	}
	return int32(min(max(s.Pulled, 0)*100/s.Total, 99)) //nolint:gosec // 0 to 99
}

const (
	// maxMessage limits the message of a registry or runtime, in bytes of its JSON encoding. maxEarlier limits the
	// message that is kept for a job that requested an earlier version.
	maxMessage = 512
	maxEarlier = 128
	// maxMessages limits the messages of one namespace together, like MaxMessages.
	maxMessages = 6 << 10
	// MaxMessages limits all messages of a NodeImage's status together, except messages of earlier versions. If there
	// are many, they are cut shorter.
	MaxMessages = 192 << 10
)

// clip shortens a text to a number of bytes of its JSON encoding.
func clip(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	size := 0
	for i, r := range text {
		if size += encoded(r); size > limit {
			return text[:i] + "…"
		}
	}
	return text
}

// encoded returns how many bytes a character has in JSON, as encoded by the API server.
func encoded(r rune) int {
	switch {
	case r < ' ' || r == '<' || r == '>' || r == '&' || r == '\u2028' || r == '\u2029':
		return len(`\u003c`)
	case r == '"' || r == '\\':
		return 2
	}
	return len(string(r))
}

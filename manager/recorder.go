package manager

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/refit-project/refit/internal/foreign"
)

// maxNote bounds the note of an Event in bytes, so that with the three bytes of "…" the API server accepts it.
const maxNote = 1021

// boundedRecorder shortens notes, which contain text of others: the API server refuses longer ones, and the Event would be
// lost.
type boundedRecorder struct{ events.EventRecorder }

// Eventf implements events.EventRecorder.
func (r boundedRecorder) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	r.EventRecorder.Eventf(regarding, related, kind, reason, action, "%s", foreign.Shorten(fmt.Sprintf(note, args...), maxNote))
}

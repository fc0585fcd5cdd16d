package crr_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
)

// A status of a request is read by every client that watches requests.
func TestMessagesOfARequestAreBounded(t *testing.T) {
	t.Parallel()
	status := v1beta1.ContainerRecreateRequestStatus{ContainerRecreateStates: []v1beta1.ContainerRecreateRequestRecreateState{
		{Name: "app", Phase: v1beta1.ContainerRecreateRequestRecreating, Message: strings.Repeat("é", 100_000)},
	}}
	crr.Complete(&status, crr.Outcome{Reason: crr.ReasonContainerFailed, Message: "container app: " + strings.Repeat("é", 100_000)}, 1, time.Unix(1e9, 0))
	said := []string{status.Message, status.ContainerRecreateStates[0].Message}
	for _, condition := range status.Conditions {
		said = append(said, condition.Message)
	}
	for _, message := range said {
		if len(message) > 1027 || !utf8.ValidString(message) || !strings.HasPrefix(message, "container app: é") {
			t.Errorf("%d bytes: %.100s", len(message), message)
		}
	}
}

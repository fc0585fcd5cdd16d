package image_test

import (
	"testing"

	"github.com/refit-project/refit/image"
)

func TestWhatAMessageSaysBeyondThatTheJobRuns(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"": "", "job is running, progress 33.3%": "", "job is running, no progress; no node is selected": "no node is selected",
		"job is running, progress 50.0%; 1 of 2 nodes failed, for example a: 404; retried": "1 of 2 nodes failed, for example a: 404; retried",
		"pull secret registry cannot be read; bind":                                        "pull secret registry cannot be read; bind", "job has completed": "job has completed",
	} {
		if got := image.Details(message); got != want {
			t.Errorf("%q: got %q, want %q", message, got, want)
		}
	}
}

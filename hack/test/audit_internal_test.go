package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOnlyUnexplainedDeadCodeIsAFault(t *testing.T) {
	t.Parallel()
	got := unexpectedlyDead("image/reference.go:24:6: unreachable func: Parse\nimage/reference.go:30:6: unreachable func: Split\n" +
		"cri/client.go:24:6: unreachable func: Client.Parse\n")
	want := []string{"image/reference.go:30:6: unreachable func: Split", "cri/client.go:24:6: unreachable func: Client.Parse"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("dead (-want +got):\n%s", diff)
	}
	if got := unexpectedlyDead(""); len(got) > 0 {
		t.Errorf("nothing is dead, got %q", got)
	}
}

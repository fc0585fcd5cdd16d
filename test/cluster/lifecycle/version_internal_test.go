package lifecycle

import (
	"strings"
	"testing"

	"github.com/refit-project/refit/test/cluster/build"
)

func TestAClusterHasOneVersionOfKubernetes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		was, wanted string
		up          bool
		want, fault string
	}{
		"new":                         {want: build.DefaultKubernetes},
		"new, of another version":     {wanted: "1.34", want: "1.34"},
		"a second node":               {was: "1.34", up: true, want: "1.34"},
		"the same again":              {was: "1.34", up: true, wanted: "1.34", want: "1.34"},
		"another version beside it":   {was: "1.34", up: true, wanted: "1.36", fault: "has Kubernetes 1.34, not 1.36"},
		"after a run that was killed": {was: "1.34", wanted: "1.36", want: "1.36"},
		"of an earlier program":       {up: true, wanted: "1.36", want: "1.36"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := settings{Kubernetes: test.was}.version(test.wanted, test.up)
			if got != test.want || (err == nil) != (test.fault == "") || err != nil && !strings.Contains(err.Error(), test.fault) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

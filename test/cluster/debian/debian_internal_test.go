package debian

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLibraries(t *testing.T) {
	t.Parallel()
	const output = `nginx
  Depends: libc6
 |Depends: libssl3
  Depends: <libfoo>
    libbar
  Depends: zlib1g
  Depends: nginx-common
  PreDepends: libbaz
`
	if diff := cmp.Diff([]string{"libc6", "zlib1g"}, libraries(output)); diff != "" {
		t.Errorf("libraries (-want +got):\n%s", diff)
	}
}

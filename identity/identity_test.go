package target_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/refit-project/refit/target"
)

func TestParseContainerID(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("ab", 32)
	tests := map[string]struct {
		in   string
		want target.ContainerID // zero: refused
	}{
		"containerd":        {in: "containerd://" + id, want: target.ContainerID{Runtime: "containerd", ID: id}},
		"cri-o":             {in: "cri-o://" + id, want: target.ContainerID{Runtime: "cri-o", ID: id}},
		"never started":     {in: ""},
		"no runtime":        {in: "://" + id},
		"no id":             {in: "containerd://"},
		"bare id":           {in: id},
		"path in the id":    {in: "containerd://../../etc"},
		"newline in the id": {in: "containerd://a\nb"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := target.ParseContainerID(tt.in)
			if refused := tt.want.IsZero(); refused != errors.Is(err, target.ErrMalformed) {
				t.Fatalf("ParseContainerID(%q) = %v, want refused: %v", tt.in, err, refused)
			}
			if got != tt.want {
				t.Errorf("ParseContainerID(%q) = %v, want %v", tt.in, got, tt.want)
			}
		})
	}
}

// What parses prints back as it was, whatever the bytes.
func FuzzParseContainerID(f *testing.F) {
	f.Add("containerd://abc")
	f.Add("a://b://c")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := target.ParseContainerID(s)
		if err == nil && id.String() != s {
			t.Errorf("%q parsed to %v", s, id)
		}
		if err != nil && len(err.Error()) > 600 {
			t.Errorf("error repeats %d bytes of hostile input", len(s))
		}
	})
}

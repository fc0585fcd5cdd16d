package identity_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/refit-project/refit/internal/identity"
)

func TestParseContainerID(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("ab", 32)
	tests := map[string]struct {
		in   string
		want identity.ContainerID // zero: refused
	}{
		"containerd":        {in: "containerd://" + id, want: identity.ContainerID{Runtime: "containerd", ID: id}},
		"cri-o":             {in: "cri-o://" + id, want: identity.ContainerID{Runtime: "cri-o", ID: id}},
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
			got, err := identity.ParseContainerID(tt.in)
			if refused := tt.want.IsZero(); refused != errors.Is(err, identity.ErrMalformed) {
				t.Fatalf("ParseContainerID(%q) = %v, want refused: %v", tt.in, err, refused)
			}
			if got != tt.want {
				t.Errorf("ParseContainerID(%q) = %v, want %v", tt.in, got, tt.want)
			}
		})
	}
}

func TestErrorAboutALongContainerIDHasNoHalfCharacter(t *testing.T) {
	t.Parallel()
	_, err := identity.ParseContainerID("a" + strings.Repeat("é", 100)) // the limit is inside a character
	if err == nil || !strings.Contains(err.Error(), `"a`+strings.Repeat("é", 49)+`…"`) {
		t.Errorf("got %v", err)
	}
	if _, err = identity.ParseContainerID("\xff"); err == nil || !strings.Contains(err.Error(), "\uFFFD") {
		t.Errorf("got %v", err)
	}
}

// Text that can be parsed is printed back unchanged, for any bytes.
func FuzzParseContainerID(f *testing.F) {
	f.Add("containerd://abc")
	f.Add("a://b://c")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := identity.ParseContainerID(s)
		if err == nil && id.String() != s {
			t.Errorf("%q parsed to %v", s, id)
		}
		if err != nil && len(err.Error()) > 600 {
			t.Errorf("error repeats %d bytes of hostile input", len(s))
		}
	})
}

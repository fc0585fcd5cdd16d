package image_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/refit-project/refit/image"
)

const digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][4]string{
		"nginx":                             {"nginx", "latest", "nginx:latest", "docker.io/library/nginx:latest"},
		"docker.io/library/nginx:1.25":      {"nginx", "1.25", "nginx:1.25", "docker.io/library/nginx:1.25"},
		"team/app:v1":                       {"team/app", "v1", "team/app:v1", "docker.io/team/app:v1"},
		"reg.example.com:5000/app":          {"reg.example.com:5000/app", "latest", "reg.example.com:5000/app:latest", "reg.example.com:5000/app:latest"},
		"reg.example.com/app@" + digest:     {"reg.example.com/app", digest, "reg.example.com/app@" + digest, "reg.example.com/app@" + digest},
		"reg.example.com/app:v1@" + digest:  {"reg.example.com/app", digest, "reg.example.com/app@" + digest, "reg.example.com/app@" + digest},
		"localhost/app:v1":                  {"localhost/app", "v1", "localhost/app:v1", "localhost/app:v1"},
		"index.docker.io/library/nginx:1.2": {"nginx", "1.2", "nginx:1.2", "docker.io/library/nginx:1.2"},
	} {
		got, err := image.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		full, err := got.Full()
		if is := [4]string{got.Repository, got.Tag, got.String(), full}; err != nil || is != want {
			t.Errorf("%s: %q, %v; want %q", text, is, err, want)
		}
	}
}

func TestParseRefusesWhatIsNoReference(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "Nginx", "nginx:", "a b", "https://example.com/a", "app@sha256:abc", "app:" + strings.Repeat("a", 129)} {
		if got, err := image.Parse(text); !errors.Is(err, image.ErrReference) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

// By the registry it is known which secret is for an image, and by the path whether it is for this repository.
func TestWhereAnImageIsPulledFrom(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]image.Location{
		"nginx": {Registry: "docker.io", Path: "library/nginx"}, "team/app:v1": {Registry: "docker.io", Path: "team/app"},
		"reg.example.com:5000/team/app@" + digest: {Registry: "reg.example.com:5000", Path: "team/app"},
	} {
		reference, err := image.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := reference.Location(); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	malformed := image.Reference{Repository: "A b", Tag: "v1"}
	if _, err := malformed.Location(); !errors.Is(err, image.ErrReference) {
		t.Errorf("error %v", err)
	}
	if _, err := malformed.Full(); !errors.Is(err, image.ErrReference) {
		t.Errorf("error %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"nginx", "reg:5000/a/b:c", "a@" + digest, "a:b@" + digest, ":::@@", strings.Repeat("a/", 200)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := image.Parse(text)
		if err != nil {
			return
		}
		again, err := image.Parse(got.String())
		if err != nil || again != got {
			t.Errorf("%q is %+v, which is %+v, %v", text, got, again, err)
		}
		if where, err := got.Location(); err != nil || where.Registry == "" || where.Path == "" {
			t.Errorf("%q: %v", text, err)
		}
	})
}

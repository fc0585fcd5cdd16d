package procfile

import (
	"errors"
	"strings"
	"testing"
)

func TestCgroupLinesThatAreNone(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("a", 64)
	for text, want := range map[string]string{
		"0::/-" + id + "\n":                           id,
		"0::/" + id[1:] + "\n":                        "",
		"\n0::/" + id + "\n":                          id,
		"12:cpu:/kubepods/" + id + "\n\n0::/" + id:    id,
		"no colon at all\n":                           "error",
		"12\n":                                        "error",
		"12:one colon\n":                              "error",
		"x:cpu:/" + id + "\n":                         "error",
		":cpu:/" + id + "\n":                          "error",
		"0::/" + id + "\n1:cpu:/" + "b" + id[1:] + "": "error",
	} {
		got, err := Cgroup([]byte(text))
		if err != nil {
			got = "error"
		}
		if got != want || err != nil && !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}

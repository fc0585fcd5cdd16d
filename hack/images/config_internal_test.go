package main

import (
	"slices"
	"strings"
	"testing"
)

func TestExtraProgramsAreListed(t *testing.T) {
	t.Parallel()
	c, err := parse([]string{"--extra", "a=test/a,b=test/b", "--extra=c=/src/c"})
	if err != nil {
		t.Fatal(err)
	}
	if all := []string{"a=test/a", "b=test/b", "c=/src/c"}; !slices.Equal(c.extra, all) || c.version != "dev" {
		t.Errorf("%+v, want %v", c, all)
	}
}

func TestFaultsAreAllNamedAtOnce(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ args, faults []string }{
		{[]string{"build"}, []string{"build"}},
		{[]string{"--extra", "App", "--push", "host/Upper"}, []string{"App", "Upper"}},
		{[]string{"--version", "a b"}, []string{"a b"}},
	} {
		_, err := parse(test.args)
		for _, fault := range test.faults {
			if err == nil || !strings.Contains(err.Error(), fault) {
				t.Errorf("%v: error %v does not name %q", test.args, err, fault)
			}
		}
	}
}

package cri

import (
	"errors"
	"testing"
)

func TestEnvironmentOfAContainer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		info string
		want map[string]string
		err  error
	}{
		"containerd":         {`{"config":{"envs":[{"key":"A","value":"old"}]},"runtimeSpec":{"process":{"env":["PATH=/bin","A=1","B=two\nlines","C=a=b","D="]}}}`, map[string]string{"PATH": "/bin", "A": "1", "B": "two\nlines", "C": "a=b", "D": ""}, nil},
		"image and pod":      {`{"runtimeSpec":{"process":{"env":["A=image","A=pod"]}}}`, map[string]string{"A": "pod"}, nil},
		"without a spec":     {`{"config":{"envs":[{"key":"A","value":"1"}]}}`, map[string]string{"A": "1"}, nil},
		"nothing":            {"", nil, ErrUnsupported},
		"another runtime's":  {`{"pid":1}`, nil, ErrUnsupported},
		"process is missing": {`{"runtimeSpec":{}}`, nil, ErrUnsupported},
	} {
		got, err := environment(test.info)
		if !errors.Is(err, test.err) || len(got) != len(test.want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		for k, v := range test.want {
			if got[k] != v {
				t.Errorf("%s: %s is %q, want %q", name, k, got[k], v)
			}
		}
	}
	if _, err := environment("{"); err == nil {
		t.Error("malformed text was read")
	}
}

func FuzzEnvironment(f *testing.F) {
	f.Add(`{"config":{"envs":[{"key":"A","value":"old"}]},"runtimeSpec":{"process":{"env":["=","A"]}}}`)
	f.Fuzz(func(_ *testing.T, info string) { _, _ = environment(info) })
}

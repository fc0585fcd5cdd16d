package mergepatch_test

import (
	"testing"

	"github.com/refit-project/refit/internal/kube/mergepatch"
)

type status struct {
	Phase   string         `json:"phase,omitempty"`
	Message string         `json:"message,omitempty"`
	Counts  map[string]int `json:"counts,omitempty"`
	List    []string       `json:"list,omitempty"`
}

func TestStatus(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before, after status
		want          string
	}{
		"changed":           {status{Phase: "a"}, status{Phase: "b"}, `{"metadata":{"resourceVersion":"7"},"status":{"phase":"b"}}`},
		"removed":           {status{Phase: "a", Message: "m"}, status{Phase: "a"}, `{"metadata":{"resourceVersion":"7"},"status":{"message":null}}`},
		"a key of a map":    {status{Counts: map[string]int{"x": 1, "y": 2}}, status{Counts: map[string]int{"x": 1}}, `{"metadata":{"resourceVersion":"7"},"status":{"counts":{"y":null}}}`},
		"a list as a whole": {status{List: []string{"x", "y"}}, status{List: []string{"x"}}, `{"metadata":{"resourceVersion":"7"},"status":{"list":["x"]}}`},
		"the same":          {status{Phase: "a"}, status{Phase: "a"}, `{"metadata":{"resourceVersion":"7"}}`},
	} {
		got, err := mergepatch.Status("7", tt.before, tt.after)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, tt.want)
		}
	}
}

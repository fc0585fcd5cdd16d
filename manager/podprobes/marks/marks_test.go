package marks_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/manager/podprobes/marks"
	"github.com/refit-project/refit/podprobe"
)

var errPolicy = errors.New("policy")

func TestWhatIsRefusedIsFoundAmongMany(t *testing.T) {
	t.Parallel()
	for _, bad := range [][]int{{}, {0}, {63}, {7, 8}, {0, 31, 32, 63}} {
		fields := podprobe.Fields{Labels: map[string]string{}, Annotations: map[string]string{}}
		for i := range 64 {
			fields.Labels[fmt.Sprintf("l%02d", i)] = "x"
		}
		fields.Labels["there"] = "x"
		pod := &corev1.Pod{}
		pod.Labels = map[string]string{"there": "x"}
		trials := 0
		trial := marks.Trial{Refused: func(err error) bool { return errors.Is(err, errPolicy) }, Try: func(some podprobe.Fields) error {
			trials++
			for _, i := range bad {
				if _, ok := some.Labels[fmt.Sprintf("l%02d", i)]; ok {
					return errPolicy
				}
			}
			return nil
		}}
		refused, why, err := trial.Accepted(fields, marks.Missing(pod, fields), errPolicy)
		if err != nil || why == nil {
			t.Errorf("%v: %v, why %v", bad, err, why)
		}
		var got, want []string
		for _, m := range refused {
			got = append(got, m.String())
		}
		for _, i := range bad {
			want = append(want, fmt.Sprintf("label l%02d", i))
		}
		if slices.Sort(got); !slices.Equal(got, want) || len(fields.Labels) != 65-len(bad) {
			t.Errorf("refused %q, want %q; %d labels are left", got, want, len(fields.Labels))
		}
		if most := 3 + 14*len(bad); trials > most {
			t.Errorf("%v: %d trials, want at most %d", bad, trials, most)
		}
	}
}

func TestAnErrorThatIsNoRefusalEndsTheTrials(t *testing.T) {
	t.Parallel()
	down := errors.New("API server is down")
	trials := 0
	trial := marks.Trial{Refused: func(error) bool { return false }, Try: func(podprobe.Fields) error {
		if trials++; trials == 2 {
			return down
		}
		return nil
	}}
	fields := podprobe.Fields{Labels: map[string]string{"a": "1", "b": "2"}, Annotations: map[string]string{}}
	if _, _, err := trial.Accepted(fields, marks.Missing(&corev1.Pod{}, fields), errPolicy); !errors.Is(err, down) || trials != 2 {
		t.Errorf("%d trials: %v", trials, err)
	}
}

func TestMissingMarksAreThoseThatDifferWithTheSmallestFirst(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{}
	pod.Labels, pod.Annotations = map[string]string{"same": "1", "other": "1"}, map[string]string{"same": "1"}
	fields := podprobe.Fields{
		Labels:      map[string]string{"same": "1", "other": "2", "new": strings.Repeat("x", 60)},
		Annotations: map[string]string{"same": "1", "large": strings.Repeat("x", 1000), "a": "1"},
	}
	var got []string
	for _, m := range marks.Missing(pod, fields) {
		got = append(got, m.String())
	}
	if want := []string{"annotation a", "label other", "label new", "annotation large"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

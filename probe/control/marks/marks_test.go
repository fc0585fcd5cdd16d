package marks_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/probe/control/marks"
	"github.com/refit-project/refit/probe/podprobe"
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

// A label and an annotation may have the same key, and a mark that others have changed since is not the one that was refused.
func TestOnlyTheMarkItselfIsTakenOut(t *testing.T) {
	t.Parallel()
	fields := podprobe.Fields{Labels: map[string]string{"a": "1", "b": "1"}, Annotations: map[string]string{"a": "1", "c": "2"}}
	marks.SetOf([]marks.Mark{{Label: true, Key: "a", Value: "1"}, {Label: true, Key: "b", Value: "other"}, {Key: "c", Value: "2"}}).RemoveFrom(fields)
	if diff := cmp.Diff(podprobe.Fields{Labels: map[string]string{"b": "1"}, Annotations: map[string]string{"a": "1"}}, fields); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The reason that is told is the one of a mark that is left out, not of all together.
func TestTheReasonIsThatOfAMarkThatIsLeftOut(t *testing.T) {
	t.Parallel()
	tooLong, all := errors.New("annotation b is too long"), errors.New("several")
	fields := podprobe.Fields{Labels: map[string]string{"a": "1"}, Annotations: map[string]string{"b": "22"}}
	trial := marks.Trial{Refused: func(error) bool { return true }, Try: func(some podprobe.Fields) error {
		if _, ok := some.Annotations["b"]; ok {
			return tooLong
		}
		return nil
	}}
	refused, why, err := trial.Accepted(fields, marks.Missing(&corev1.Pod{}, fields), all)
	if err != nil || !errors.Is(why, tooLong) || len(refused) != 1 || refused[0].String() != "annotation b" {
		t.Errorf("%v, %v, %v", refused, why, err)
	}
	if diff := cmp.Diff(podprobe.Fields{Labels: map[string]string{"a": "1"}, Annotations: map[string]string{}}, fields); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}

// Without a mark that could be at fault it is the rest that is refused.
func TestWhatIsRefusedWithoutMarksIsAnError(t *testing.T) {
	t.Parallel()
	fields := podprobe.Fields{Labels: map[string]string{"a": "1"}, Annotations: map[string]string{}}
	trial := marks.Trial{Refused: func(error) bool { return true }, Try: func(podprobe.Fields) error { return errPolicy }}
	if refused, _, err := trial.Accepted(fields, marks.Missing(&corev1.Pod{}, fields), errors.New("first")); !errors.Is(err, errPolicy) || len(refused) > 0 {
		t.Errorf("%v, %v", refused, err)
	}
}

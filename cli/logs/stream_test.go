package logs_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/cli/logs"
)

// streams opens one stream after another for a container that is running until the last one has ended.
type streams struct {
	api   client.WithWatch
	pod   *corev1.Pod
	texts []string // "!" cannot be opened
	asked []*corev1.PodLogOptions
}

func (s *streams) open(ctx context.Context, _, _ string, options *corev1.PodLogOptions) (io.ReadCloser, error) {
	if options.Previous {
		return nil, apierrors.NewBadRequest("gone")
	}
	text := s.texts[len(s.asked)]
	if s.asked = append(s.asked, options); text == "!" {
		return nil, apierrors.NewInternalError(errors.New("dial tcp 10.0.0.1:10250: connection refused"))
	}
	if len(s.asked) == len(s.texts) {
		s.pod.Status.Phase = corev1.PodSucceeded
		return io.NopCloser(strings.NewReader(text)), s.api.Status().Update(ctx, s.pod)
	}
	return io.NopCloser(strings.NewReader(text)), nil
}

// A stream ends when kubelet is restarted, or when a proxy has a time-out: the instance and its log go on.
func TestFollowGoesOnAfterTheEndOfAStream(t *testing.T) {
	t.Parallel()
	const first, second, third = "2026-11-22T12:00:01.000000001Z ", "2026-11-22T12:00:01.000000002Z ", "2026-11-22T12:00:01.000000003Z "
	const goesOn = "==> app: the stream of the log had ended, and goes on <==\n"
	const unreadable = "==> app: the log cannot be read, trying again: Internal error occurred: dial tcp 10.0.0.1:10250: connection refused <==\n"
	for name, tc := range map[string]struct {
		texts      []string
		timestamps bool
		want       string
		notes      string
	}{
		"no times":            {texts: []string{"a\n", "b\n"}, want: "a\nb\n", notes: goesOn},
		"times":               {texts: []string{first + "a\n", first + "a\n" + second + "b\n"}, want: "a\nb\n", notes: goesOn},
		"times are shown":     {texts: []string{first + "a\n", first + "a\n" + second + "b\n"}, timestamps: true, want: first + "a\n" + second + "b\n", notes: goesOn},
		"twice":               {texts: []string{first + "a\n", second + "b\n", second + "b\n" + third + "c\n"}, want: "a\nb\nc\n", notes: goesOn + goesOn},
		"nothing new":         {texts: []string{first + "a\n", first + "a\n", ""}, want: "a\n"},
		"a part of a line":    {texts: []string{first + "a\n" + second + "b", second + "bc\n"}, want: "a\nb\nbc\n", notes: goesOn},
		"kubelet is not back": {texts: []string{first + "a\n", "!", "!", second + "b\n"}, want: "a\nb\n", notes: unreadable + goesOn},
		"the instance is removed": {
			texts: []string{first + "a\n" + `rpc error: code = NotFound desc = an error occurred when try to find container "1": not found`, second + "b\n"},
			want:  "a\nb\n", notes: goesOn,
		},
		"a line that looks like it": {texts: []string{first + "rpc error: code = NotFound desc = no order\n"}, want: "rpc error: code = NotFound desc = no order\n"},
		"kubelet has no log":        {texts: []string{first + "a\n", "unable to retrieve container logs for containerd://second", ""}, want: "a\n", notes: "==> app: the log cannot be read, trying again: the log is gone <==\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &streams{pod: pod(), texts: tc.texts}
				s.api = cluster(t, s.pod)
				if err := s.api.Get(t.Context(), client.ObjectKeyFromObject(s.pod), s.pod); err != nil {
					t.Fatal(err)
				}
				var out, notes bytes.Buffer
				began := time.Now()
				config := logs.Config{API: s.api, Open: s.open, Namespace: "shop", Container: "app", Tail: 10, Timestamps: tc.timestamps, Follow: true, Notes: &notes}
				if err := logs.Run(t.Context(), config, &out, "web"); err != nil {
					t.Fatal(err)
				}
				if !strings.HasSuffix(out.String(), "restarts 1 <==\n"+tc.want) || notes.String() != tc.notes {
					t.Errorf("log:\n%s\nnotes:\n%s", out.String(), notes.String())
				}
				if took, pauses := time.Since(began), time.Duration(len(tc.texts)-1)*5*time.Second; took != pauses {
					t.Errorf("it took %s, want %s: five seconds between the streams", took, pauses)
				}
				for _, options := range s.asked[1:] {
					if options.TailLines != nil || options.SinceTime == nil && options.SinceSeconds == nil {
						t.Errorf("asked for %+v", options)
					}
				}
			})
		})
	}
}

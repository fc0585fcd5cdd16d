package logs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/kubelet"
)

// timeOfLine is the format of the times with which kubelet begins lines if it is asked for them: types.RFC3339NanoFixed.
const timeOfLine = "2006-01-02T15:04:05.000000000Z07:00"

// errGone means that kubelet finds no log of the instance.
var errGone = errors.New("the log is gone")

// begin writes the log of an instance from the configured line on.
func (r *reader) begin(ctx context.Context, options *corev1.PodLogOptions) error {
	r.last, r.ended, r.unreadable = time.Time{}, time.Now(), false
	if r.Since > 0 {
		options.SinceSeconds = new(wholeSeconds(r.Since))
	}
	if r.Tail >= 0 {
		options.TailLines = &r.Tail
	}
	return r.stream(ctx, options, false)
}

// resume goes on with the log of an instance that is running although the stream has ended, for example because kubelet was restarted. It
// returns nil if the log cannot be read now.
func (r *reader) resume(ctx context.Context) error {
	options := &corev1.PodLogOptions{Follow: true}
	if r.last.IsZero() {
		options.SinceSeconds = new(wholeSeconds(max(time.Since(r.ended), time.Second)))
	} else {
		options.SinceTime = new(metav1.NewTime(r.last)) // the API has whole seconds: stream leaves out what has been written
	}
	err := r.stream(ctx, options, true)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errGone), console.Unreachable(err), apierrors.IsBadRequest(err), apierrors.IsNotFound(err): // the next look says whether the pod is gone
		if !r.unreadable {
			r.note("the log cannot be read, trying again: %v", err)
		}
		r.unreadable = true
		return nil
	}
	return err
}

// note says on standard error why the log has a gap.
func (r *reader) note(format string, args ...any) {
	fmt.Fprintf(r.Notes, "==> %s: %s <==\n", r.Container, foreign.Printable(fmt.Sprintf(format, args...)))
}

// stream writes a log until its stream ends. A followed log is read with its times, so that it can be resumed without a gap.
func (r *reader) stream(ctx context.Context, options *corev1.PodLogOptions, resumed bool) error {
	options.Container, options.Timestamps = r.Container, r.Timestamps || options.Follow
	written := r.last // the time of the last line of the stream before this one
	stream, err := r.Open(ctx, r.key.Namespace, r.key.Name, options)
	if err != nil {
		return err
	}
	defer stream.Close()
	defer func() { r.ended = time.Now() }()
	text := bufio.NewReader(stream)
	for first := true; ; first = false {
		line, err := text.ReadString('\n')
		if first && (options.Previous || resumed) && errors.Is(err, io.EOF) && kubelet.LogIsGone(line) {
			return errGone
		}
		if options.Follow && errors.Is(err, io.EOF) && kubelet.InstanceIsGone(line) { // lines of the container begin with a time
			return nil
		}
		shown := line
		if options.Follow {
			shown = r.withoutTime(line, written)
		}
		if shown != "" {
			if resumed {
				r.note("the stream of the log had ended, and goes on")
				resumed, r.unreadable = false, false
			}
			if _, err := io.WriteString(r.out, strings.TrimSuffix(shown, "\n")+"\n"); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		}
	}
}

// withoutTime records the time of a line, and returns the line without it unless times are shown. It returns an empty text for a line
// that was written before.
func (r *reader) withoutTime(line string, written time.Time) string {
	stamp, rest, found := strings.Cut(line, " ")
	at, err := foreign.Time(stamp)
	if !found || err != nil || at.Format(timeOfLine) != stamp { // a message of kubelet
		return line
	}
	if !at.After(written) {
		return ""
	}
	if strings.HasSuffix(rest, "\n") { // else the rest of the line may follow
		r.last = at
	}
	if r.Timestamps {
		return line
	}
	return rest
}

func wholeSeconds(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }

package logs_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/refit-project/refit/cli/logs"
	"github.com/refit-project/refit/internal/console"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// pod has a container that runs its second instance.
func pod() *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	p.Spec.Containers = []corev1.Container{{Name: "app"}, {Name: "log"}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", ContainerID: "containerd://second", RestartCount: 1,
		State:                corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(noon)}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: "containerd://first", ExitCode: 143, FinishedAt: metav1.NewTime(noon.Add(-time.Second))}},
	}}
	return p
}

func cluster(t *testing.T, p *corev1.Pod) client.WithWatch {
	t.Helper()
	kinds := runtime.NewScheme()
	if err := corev1.AddToScheme(kinds); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(kinds).WithObjects(p).WithStatusSubresource(&corev1.Pod{}).
		WithIndex(&corev1.Pod{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).Build()
}

// texts returns the logs of the previous and the current instance.
func texts(previous, present string) logs.Open {
	return func(_ context.Context, _, _ string, options *corev1.PodLogOptions) (io.ReadCloser, error) {
		if options.Previous && previous == "" {
			return nil, apierrors.NewBadRequest("previous terminated container not found")
		}
		text := present
		if options.Previous {
			text = previous
		}
		return io.NopCloser(strings.NewReader(text)), nil
	}
}

func TestBothSidesOfARestart(t *testing.T) {
	t.Parallel()
	const present = "==> app: instance second, since 12:00:00 UTC, restarts 1 <==\nhello\n"
	for name, tc := range map[string]struct {
		change    func(*corev1.Pod)
		container string
		open      logs.Open
		want      string
		code      int
	}{
		"both":             {container: "app", open: texts("bye", "hello"), want: "==> app: previous instance first, ended 11:59:59 UTC with exit code 143 <==\nbye\n" + present},
		"log is gone":      {container: "app", open: texts("", "hello"), want: "==> app: previous instance first, ended 11:59:59 UTC with exit code 143 <==\nits log is gone\n" + present},
		"kubelet has none": {container: "app", open: texts("unable to retrieve container logs for containerd://first", "hello"), want: "==> app: previous instance first, ended 11:59:59 UTC with exit code 143 <==\nits log is gone\n" + present},
		"removed":          {change: func(p *corev1.Pod) { p.Status.ContainerStatuses[0].LastTerminationState = corev1.ContainerState{} }, container: "app", open: texts("", "hello"), want: "==> app: the previous instance has been removed, and its log with it <==\n" + present},
		"first instance":   {change: func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 0 }, container: "app", open: texts("", "hello"), want: "==> app: instance second, since 12:00:00 UTC, restarts 0 <==\nhello\n"},
		"only container":   {change: func(p *corev1.Pod) { p.Spec.Containers = p.Spec.Containers[:1] }, open: texts("", "hello"), want: "==> app: previous instance first, ended 11:59:59 UTC with exit code 143 <==\nits log is gone\n" + present},
		"of several":       {change: func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 5 }, container: "app", open: texts("bye", "hello"), want: "==> app: latest ended instance that kubelet reports, first, ended 11:59:59 UTC with exit code 143 <==\nbye\n==> app: instance second, since 12:00:00 UTC, restarts 5 <==\nhello\n"},
		"in back-off": {change: func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].ContainerID, p.Status.ContainerStatuses[0].State = "containerd://first", corev1.ContainerState{}
		}, container: "app", open: texts("bye", "bye"), want: "==> app: instance first, which does not run, restarts 1 <==\nbye\n"},
		"none named":      {open: texts("", ""), code: console.ExitRefused},
		"no such":         {container: "db", open: texts("", ""), code: console.ExitRefused},
		"not yet started": {container: "log", open: texts("", ""), code: console.ExitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := pod()
			if tc.change != nil {
				tc.change(p)
			}
			var out bytes.Buffer
			err := logs.Run(t.Context(), logs.Config{API: cluster(t, p), Open: tc.open, Namespace: "shop", Container: tc.container, Tail: 10}, &out, "web")
			if console.ExitCode(err) != tc.code || err == nil && out.String() != tc.want || err != nil && strings.Contains(err.Error(), "update") {
				t.Errorf("%v\ngot:\n%s\nwant:\n%s", err, out.String(), tc.want)
			}
		})
	}
}

// The log of the instance that is followed ends when it is restarted.
func TestFollowGoesOnWithTheNextInstance(t *testing.T) {
	t.Parallel()
	p := pod()
	api := cluster(t, p)
	instances := 0
	open := func(ctx context.Context, _, _ string, options *corev1.PodLogOptions) (io.ReadCloser, error) {
		if options.Previous {
			return nil, apierrors.NewBadRequest("gone")
		}
		instances++
		status := &p.Status.ContainerStatuses[0]
		text := "of " + status.ContainerID + "\n"
		if instances == 1 {
			status.ContainerID, status.RestartCount = "containerd://third", 2
		} else {
			p.Status.Phase = corev1.PodSucceeded
		}
		return io.NopCloser(strings.NewReader(text)), api.Status().Update(ctx, p)
	}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err := logs.Run(t.Context(), logs.Config{API: api, Open: open, Namespace: "shop", Container: "app", Tail: -1, Follow: true}, &out, "web")
	if err != nil || !strings.Contains(out.String(), "of containerd://second\n==> app: instance third, since 12:00:00 UTC, restarts 2 <==\nof containerd://third\n") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestFollowEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	p := pod()
	open := func(context.Context, string, string, *corev1.PodLogOptions) (io.ReadCloser, error) {
		cancel(console.ErrInterrupted)
		return io.NopCloser(strings.NewReader("")), nil
	}
	err := logs.Run(ctx, logs.Config{API: cluster(t, p), Open: open, Namespace: "shop", Container: "app", Follow: true}, io.Discard, "web")
	if !errors.Is(err, console.ErrInterrupted) {
		t.Errorf("%v", err)
	}
}

func TestLinesAreLimitedByTheirAge(t *testing.T) {
	t.Parallel()
	var asked []*corev1.PodLogOptions
	open := func(_ context.Context, _, _ string, options *corev1.PodLogOptions) (io.ReadCloser, error) {
		asked = append(asked, options)
		return io.NopCloser(strings.NewReader("hello")), nil
	}
	config := logs.Config{API: cluster(t, pod()), Open: open, Namespace: "shop", Container: "app", Tail: -1, Since: 1500 * time.Millisecond, Timestamps: true}
	if err := logs.Run(t.Context(), config, io.Discard, "web"); err != nil {
		t.Fatal(err)
	}
	for _, options := range asked {
		if options.SinceSeconds == nil || *options.SinceSeconds != 2 || !options.Timestamps || options.TailLines != nil {
			t.Errorf("asked for %+v", options)
		}
	}
	if len(asked) != 2 {
		t.Errorf("%d logs, want the previous instance's and the present one's", len(asked))
	}
}

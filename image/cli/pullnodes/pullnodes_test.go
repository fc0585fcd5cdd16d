package pullnodes_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image/cli/pullnodes"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/table"
)

const app = "registry.test/shop/app:2"

// fixture is a cluster whose manager carries a job out when it is created.
type fixture struct {
	config pullnodes.Config
	out    bytes.Buffer
	err    error                             // answer to the creation
	status func(*v1beta1.ImagePullJobStatus) // what the manager says
	job    *v1beta1.ImagePullJob
	away   int // how many reads of the job the API server does not answer
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{}
	kinds := runtime.NewScheme()
	if err := v1beta1.AddToScheme(kinds); err != nil {
		t.Fatal(err)
	}
	node := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	node.Spec.Images = map[string]v1beta1.ImageSpec{"registry.test/shop/app": {Tags: []v1beta1.ImageTagSpec{{Tag: "2", Version: 1}}}}
	node.Status.ImageStatuses = map[string]v1beta1.ImageStatus{"registry.test/shop/app": {Tags: []v1beta1.ImageTagStatus{{
		Tag: "2", Version: 1, Phase: v1beta1.ImagePhasePulling, PulledBytes: 5_000_000, TotalBytes: 20_000_000,
	}}}}
	api := fake.NewClientBuilder().WithScheme(kinds).WithObjects(node).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if f.err != nil {
				return f.err
			}
			o.SetName(o.GetGenerateName() + "x")
			f.job = o.(*v1beta1.ImagePullJob)
			stored := f.job.DeepCopy()
			f.status(&stored.Status)
			return c.Create(ctx, stored, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if f.away--; f.away >= 0 {
				return apierrors.NewServiceUnavailable("the API server is starting")
			}
			return c.Get(ctx, key, o, opts...)
		},
	}).Build()
	f.config = pullnodes.Config{API: api, Output: console.NewOutput(&f.out, false), Namespace: "shop", Image: app, Parallelism: 2, Wait: true}
	return f
}

func ended(desired, succeeded int32, failed ...string) func(*v1beta1.ImagePullJobStatus) {
	return func(s *v1beta1.ImagePullJobStatus) {
		s.StartTime, s.CompletionTime = new(metav1.Now()), new(metav1.Now())
		s.Desired, s.Succeeded, s.FailedNodes, s.Failed, s.Message = desired, succeeded, failed, int32(len(failed)), "not found"
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*fixture)
		status func(*v1beta1.ImagePullJobStatus)
		code   int
		words  string
	}{
		"done":             {status: ended(3, 3), words: "3 of 3 nodes have " + app},
		"failed":           {status: ended(3, 1, "node-3", "node-2"), code: 1, words: "1 of 3 nodes have the image; not node-2, node-3: not found"},
		"no node":          {status: ended(0, 0), code: 1, words: "no node is selected"},
		"not an image":     {change: func(f *fixture) { f.config.Image = "A B" }, status: ended(1, 1), code: 2, words: "A B"},
		"refused":          {change: func(f *fixture) { f.err = apierrors.NewBadRequest("no such Secret") }, code: 2, words: "no such Secret"},
		"not waited for":   {change: func(f *fixture) { f.config.Wait = false }, status: ended(3, 0), words: "ImagePullJob pull-app-2-x"},
		"not taken up":     {change: func(f *fixture) { f.config.Timeout = 20 * time.Second }, status: func(*v1beta1.ImagePullJobStatus) {}, code: 124, words: "does not process ImagePullJobs (manager.features.images"},
		"not done in time": {change: func(f *fixture) { f.config.Timeout = 10 * time.Millisecond }, status: func(s *v1beta1.ImagePullJobStatus) { s.StartTime, s.Desired, s.Active = new(metav1.Now()), 3, 1 }, code: 124, words: "the pull goes on"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				f.status = tc.status
				if tc.change != nil {
					tc.change(f)
				}
				err := pullnodes.Run(t.Context(), f.config)
				text := f.out.String()
				if err != nil {
					text += err.Error()
				}
				if console.ExitCode(err) != tc.code || !strings.Contains(text, tc.words) {
					t.Errorf("exit code %d:\n%s", console.ExitCode(err), text)
				}
			})
		})
	}
}

func TestPullIsFollowedAfterAnOutageOfTheAPIServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.status, f.away = ended(3, 3), 5
		err := pullnodes.Run(t.Context(), f.config)
		if text := f.out.String(); err != nil || !strings.Contains(text, "the API server is starting") || !strings.Contains(text, "3 of 3 nodes have") {
			t.Errorf("%v:\n%s", err, text)
		}
	})
}

// The Secret that was missing is no reason of the failure.
func TestAJobThatIsReadAgainHasNothingOfTheVersionBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.status = ended(0, 0)
		responses := []string{
			`{"metadata":{"name":"x"},"status":{"startTime":"2026-11-27T09:00:00Z","desired":1,"active":1,"message":"Secret shop/nope: not found"}}`,
			`{"metadata":{"name":"x"},"status":{"startTime":"2026-11-27T09:00:00Z","completionTime":"2026-11-27T09:00:01Z","failed":1,"failedNodes":["node-1"],"desired":1}}`,
		}
		f.config.API = interceptor.NewClient(f.config.API.(client.WithWatch), interceptor.Funcs{
			// Like the client of the API server this does not reset the object.
			Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
				response := responses[0]
				responses = responses[1:]
				return json.Unmarshal([]byte(response), o)
			},
		})
		err := pullnodes.Run(t.Context(), f.config)
		if !errors.Is(err, pullnodes.ErrFailed) || strings.Contains(err.Error(), "Secret") {
			t.Errorf("%v", err)
		}
	})
}

func TestNameOfTheJob(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.status = ended(1, 1)
	var names bytes.Buffer
	f.config.Made = table.Made{Out: &names, Format: "name"}
	if err := pullnodes.Run(t.Context(), f.config); err != nil || names.String() != "imagepulljob.apps.kruise.io/pull-app-2-x\n" {
		t.Errorf("%q, %v", names.String(), err)
	}
}

func TestJobIsPrintedAtTheEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.status = ended(3, 2)
	var printed bytes.Buffer
	f.config.Made = table.Made{Out: &printed, Format: "json"}
	if err := pullnodes.Run(t.Context(), f.config); console.ExitCode(err) != 1 { // a node has failed
		t.Errorf("%v", err)
	}
	var job v1beta1.ImagePullJob
	if err := json.Unmarshal(printed.Bytes(), &job); err != nil || job.Kind != "ImagePullJob" || job.Name != "pull-app-2-x" || job.Status.Succeeded != 2 {
		t.Errorf("%v: %s", err, printed.String())
	}
}

func TestProgressIsShownInBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.config.Timeout = 10 * time.Millisecond
		f.status = func(s *v1beta1.ImagePullJobStatus) { s.StartTime, s.Desired, s.Active = new(metav1.Now()), 3, 1 }
		if err := pullnodes.Run(t.Context(), f.config); !errors.Is(err, console.ErrTimeout) {
			t.Fatal(err)
		}
		if !strings.Contains(f.out.String(), "0 of 3 nodes have it, 1 pull, 0 failed; 5.0 MB of 20.0 MB") {
			t.Error(f.out.String())
		}
	})
}

// It waits for its pull secret, and nothing else would say so before the time-out.
func TestProgressSaysWhatTheJobWaitsFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.config.Timeout = 10 * time.Millisecond
		f.status = func(s *v1beta1.ImagePullJobStatus) {
			s.StartTime, s.Desired, s.Message = new(metav1.Now()), 3, "job is running, progress 0.0%; Secret shop/nope: not found"
		}
		if err := pullnodes.Run(t.Context(), f.config); !errors.Is(err, console.ErrTimeout) {
			t.Fatal(err)
		}
		if !strings.Contains(f.out.String(), "0 of 3 nodes have it, 0 pull, 0 failed; Secret shop/nope: not found") {
			t.Error(f.out.String())
		}
	})
}

func TestOptionsAreInTheJob(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.status = ended(1, 1)
	f.config.Nodes, f.config.Secrets, f.config.Always = &metav1.LabelSelector{MatchLabels: map[string]string{"pool": "gpu"}}, []string{"mine"}, true
	if err := pullnodes.Run(t.Context(), f.config); err != nil {
		t.Fatal(err)
	}
	spec := f.job.Spec
	if spec.Selector.MatchLabels["pool"] != "gpu" || spec.Parallelism.IntValue() != 2 || spec.PullSecrets[0] != "mine" || spec.ImagePullPolicy != v1beta1.PullAlways ||
		*spec.CompletionPolicy.TTLSecondsAfterFinished == 0 {
		t.Errorf("%+v", spec)
	}
}

package dashboard

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/v1beta1"
)

// refusing has a client whose lists end with an error, unless it is nil.
func refusing(refuse func(client.ObjectList) error) func(*Config) {
	return func(c *Config) {
		c.API = interceptor.NewClient(c.API, interceptor.Funcs{List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if err := refuse(list); err != nil {
				return err
			}
			return api.List(ctx, list, options...)
		}})
	}
}

func forbidden(client.ObjectList) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "objects"}, "", errors.New("not allowed"))
}

// A page does not say that there is nothing, where the user may not see what there is.
func TestNothingIsSaidAboutWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := open(t, refusing(forbidden))
	for path, want := range map[string]string{
		"/":            "It is not known what is in progress.",
		"/nodes":       "It is not known on which nodes refit-daemon is ready.",
		"/sidecarsets": "It is not known which SidecarSets there are.",
	} {
		got := s.get(t, path)
		contains(t, got, want, unread, "forbidden")
		for _, no := range []string{"There is no refit-daemon", "There are no SidecarSets", "There are 0", "Nothing in progress", "0 of 0 nodes", "0 rollouts"} {
			if strings.Contains(got.body, no) {
				t.Errorf("%s: %q\n%s", path, no, got.body)
			}
		}
	}
}

// During an outage, and without the right to read, nothing is counted as if it was known.
func TestOnlyWhatIsKnownIsCounted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		refused func(client.ObjectList) bool
		want    string
	}{
		"a part of the rollouts": {func(l client.ObjectList) bool { _, is := l.(*v1beta1.SidecarSetList); return is },
			"In progress: 1 rollout, 0 requests, 0 image pulls. There may be more, because not everything can be read."},
		"requests": {func(l client.ObjectList) bool { _, is := l.(*v1beta1.ContainerRecreateRequestList); return is }, "In progress: 1 rollout, 0 image pulls. Not known: requests."},
	} {
		s := open(t, refusing(func(list client.ObjectList) error {
			if tc.refused(list) {
				return forbidden(list)
			}
			return nil
		}), shop(1)...)
		if got := s.get(t, "/"); !strings.Contains(got.body, tc.want) {
			t.Errorf("%s: no %q in\n%s", name, tc.want, got.body)
		}
	}
}

// The pages of a pod and of a rollout have what the user may read.
func TestPagesWithoutRequests(t *testing.T) {
	t.Parallel()
	s := open(t, refusing(func(list client.ObjectList) error {
		if _, ok := list.(*v1beta1.ContainerRecreateRequestList); ok {
			return forbidden(list)
		}
		return nil
	}), shop(1)...)
	got := s.get(t, "/pod?name=web-0000")
	if got.code != http.StatusOK {
		t.Errorf("%d", got.code)
	}
	contains(t, got, "Why its containers were restarted cannot be read: ", "not known", unread, `href="log?container=app`)
	contains(t, s.get(t, restarting), "ContainerRecreateRequests cannot be read: ", "<td>not known</td>")
}

// A rollout whose workload is gone can still be looked at and aborted.
func TestRolloutWithoutItsWorkload(t *testing.T) {
	t.Parallel()
	s := open(t, nil, shop(1)[1:]...)
	got := s.get(t, restarting)
	if got.code != http.StatusOK {
		t.Errorf("%d", got.code)
	}
	contains(t, got, "Its pods are not known: ", "not found", unread, ">Abort</a>")
}

// An error is gone when the watch of a kind without objects works again.
func TestErrorOfAnEmptyKindEnds(t *testing.T) {
	t.Parallel()
	failed := make(chan struct{}, 1)
	failed <- struct{}{}
	s := open(t, refusing(func(list client.ObjectList) error {
		if _, ok := list.(*v1beta1.SidecarSetList); ok {
			select {
			case <-failed:
				return errors.New("the API server is away")
			default:
			}
		}
		return nil
	}))
	events := s.stream(t, "/stream/sidecarsets")
	if first := <-events; !strings.Contains(first, "the API server is away") || !strings.Contains(first, unread) {
		t.Errorf("%s", first)
	}
	const patience = 30 * time.Second
	for limit := time.After(patience); ; {
		select {
		case next := <-events:
			if strings.Contains(next, `"empty":"There are no SidecarSets."`) {
				return
			}
		case <-limit:
			t.Fatal("the error is still there")
		}
	}
}

// A log that is too long ends with a line that says so.
func TestLongLog(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("x", 1<<20) + "\n"
	s := open(t, func(c *Config) {
		c.Logs = func(context.Context, string, string, *corev1.PodLogOptions) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(strings.Repeat(line, 6))), nil
		}
	}, shop(1)...)
	got := s.get(t, "/log?name=web-0000&container=app")
	if most := 5 << 20; len(got.body) > most || !strings.HasSuffix(got.body, "Only the first 4 MiB are shown, and nothing that follows. kubectl refit logs shows all.\n") {
		t.Errorf("%d bytes, %q", len(got.body), got.body[max(len(got.body)-200, 0):])
	}
}

// The picture of many pods, for each of which several objects are read, is not offered.
func TestNoPictureOfManyPods(t *testing.T) {
	t.Parallel()
	for pods, want := range map[int]bool{maxPicture: true, maxPicture + 1: false} {
		s := open(t, nil, shop(pods)...)
		if got := s.get(t, restarting); strings.Contains(got.body, "Timeline as a picture") != want {
			t.Errorf("%d pods: the link is there: %t", pods, !want)
		}
	}
}

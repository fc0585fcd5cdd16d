package status_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cli/status"
)

// server answers with one list of requests after another, and ends every watch. Like the client of the API server it decodes into the
// list that it is given, and does not reset that before.
type server struct {
	client.WithWatch
	mutex     sync.Mutex
	responses []string
}

func (s *server) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	if _, ok := into.(*v1beta1.ContainerRecreateRequestList); !ok {
		return nil
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	response := s.responses[0]
	if len(s.responses) > 1 {
		s.responses = s.responses[1:]
	}
	return json.Unmarshal([]byte(response), into)
}

func (s *server) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	ended := watch.NewFake()
	ended.Stop()
	return ended, nil
}

// A request that is in progress is not shown as ended because another one had its place in the list before the watch ended.
func TestAListAfterAWatchHasNothingOfTheListBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{responses: []string{
			`{"items":[{"metadata":{"name":"b"},"status":{"phase":"Completed","completionTime":"2026-11-27T09:00:00Z"}}]}`,
			`{"items":[{"metadata":{"name":"a"},"status":{}},{"metadata":{"name":"b"},"status":{"phase":"Completed","completionTime":"2026-11-27T09:00:00Z"}}]}`,
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var out strings.Builder
		if err := status.Watch(ctx, status.Config{API: s, Namespace: "shop", Now: func() time.Time { return noon }}, &out); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != "12:00:00 crr/a pod/ Waiting 0/0\n" {
			t.Errorf("%s", got)
		}
	})
}

// Images and messages are text of others: they can neither begin a line, which would look as another object, nor clear the screen.
func TestALineOfAWatchIsOneLineWithoutControlCharacters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		job := pull(func(s *v1beta1.ImagePullJobStatus) { s.Message = "unauthorized:\x1b[1A\r\nlog in" })
		job.Spec.Image = "x\n12:00:00 restartrollout/web deployment/web Succeeded 5/5\x1b[2J"
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var out strings.Builder
		if err := status.Watch(ctx, status.Config{API: cluster(t, job), Namespace: "shop", Now: func() time.Time { return noon }}, &out); err != nil {
			t.Fatal(err)
		}
		const want = "12:00:00 imagepulljob/warm x 12:00:00 restartrollout/web deployment/web Succeeded 5/5[2J Pulling 1/3 unauthorized:[1A log in\n"
		if got := out.String(); got != want {
			t.Errorf("%q", got)
		}
	})
}

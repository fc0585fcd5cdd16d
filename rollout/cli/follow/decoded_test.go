package follow_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/rollout/cli/follow"
)

// server answers with one response after another. Like the client of the API server it decodes them into the object that it is
// given, and does not reset that before.
type server struct {
	client.WithWatch
	responses []string
}

func (s *server) next(into any) error {
	response := s.responses[0]
	if len(s.responses) > 1 {
		s.responses = s.responses[1:]
	}
	return json.Unmarshal([]byte(response), into)
}

func (s *server) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	return s.next(into)
}

func (s *server) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	return s.next(into)
}

func (s *server) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	ended := watch.NewFake()
	ended.Stop()
	return ended, nil
}

// A request that has ended without a message has succeeded under the CRD of OpenKruise, whatever it has waited for before.
func TestAnObjectThatIsReadAgainHasNothingOfTheVersionBefore(t *testing.T) {
	t.Parallel()
	s := &server{responses: []string{
		`{"metadata":{"name":"a"},"status":{"phase":"Recreating","message":"waits"}}`, `{"metadata":{"name":"a"},"status":{"phase":"Completed"}}`,
	}}
	last, err := follow.Object(t.Context(), s, &v1beta1.ContainerRecreateRequestList{}, &v1beta1.ContainerRecreateRequest{}, func(r *v1beta1.ContainerRecreateRequest) bool {
		return r.Status.Phase == v1beta1.ContainerRecreateRequestCompleted
	}, func(error) {})
	if err != nil || last.Status.Message != "" {
		t.Errorf("%v, message %q", err, last.Status.Message)
	}
}

// A request that is in progress is not shown as ended because another one had its place in the list.
func TestAListThatIsReadAgainHasNothingOfTheListBefore(t *testing.T) {
	t.Parallel()
	s := &server{responses: []string{
		`{"items":[{"metadata":{"name":"b"},"status":{"completionTime":"2026-11-27T09:00:00Z"}}]}`,
		`{"items":[{"metadata":{"name":"a"},"status":{}},{"metadata":{"name":"b"},"status":{"completionTime":"2026-11-27T09:00:00Z"}}]}`,
	}}
	var ended []string
	kind := follow.Kind{API: s, List: &v1beta1.ContainerRecreateRequestList{}, See: func(_ context.Context, object client.Object) {
		if r, ok := object.(*v1beta1.ContainerRecreateRequest); ok && r.Status.CompletionTime != nil {
			ended = append(ended, r.Name)
		}
	}}
	kind.Read(t.Context())
	kind.Read(t.Context())
	if !slices.Equal(ended, []string{"b", "b"}) {
		t.Errorf("ended: %v", ended)
	}
}

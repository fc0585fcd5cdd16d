package e2e_test

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// answering is an API server that gives each creation the same answer.
type answering struct {
	client.Client
	answer  error
	created *int
}

func (c answering) Create(context.Context, client.Object, ...client.CreateOption) error {
	*c.created++
	return c.answer
}

// TestHowMuchAFloodWrites is the same if all of it is refused.
func TestHowMuchAFloodWrites(t *testing.T) {
	t.Parallel()
	const manifest = "{apiVersion: v1, kind: ConfigMap}"
	refused := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "none")
	for name, tt := range map[string]struct {
		flood  attack
		answer error
		share  int
		want   int
	}{
		"cheap, long run":           {cheap(200, manifest), nil, 1, 1000},
		"cheap, short run":          {cheap(200, manifest), nil, fewerThings, 40},
		"refused, long run":         {cheap(200, manifest), refused, 1, 1000},
		"refused, short run":        {cheap(200, manifest), refused, fewerThings, 40},
		"large, long run":           {flood(60, manifest), nil, 1, 60},
		"large, short run":          {flood(60, manifest), nil, fewerThings, 12},
		"no answer, so it is ended": {flood(60, manifest), errors.New("EOF"), 1, 1},
	} {
		created := 0
		if err := tt.flood.do(t.Context(), attacker{Client: answering{answer: tt.answer, created: &created}, share: tt.share}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if created != tt.want {
			t.Errorf("%s: %d objects, want %d", name, created, tt.want)
		}
	}
}

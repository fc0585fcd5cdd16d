package output_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/refit-project/refit/internal/identity"
	"github.com/refit-project/refit/internal/result"
	"github.com/refit-project/refit/internal/result/output"
)

// api is an API server for patches: it applies them with the libraries of the real one, and counts them.
type api struct {
	mu       sync.Mutex
	objects  map[string]string // content by Object.String
	reads    int
	patches  []output.Patch
	readErr  error
	patchErr error
}

func (a *api) Read(_ context.Context, object output.Object) (map[string]any, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reads++
	if a.readErr != nil {
		return nil, a.readErr
	}
	document, ok := a.objects[object.String()]
	if !ok {
		return nil, fmt.Errorf("%s: not found", object)
	}
	var content map[string]any
	err := json.Unmarshal([]byte(document), &content)
	return content, err
}

func (a *api) Patch(_ context.Context, patch output.Patch) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.patches = append(a.patches, patch)
	if a.patchErr != nil {
		return a.patchErr
	}
	document := []byte(a.objects[patch.Object.String()])
	var err error
	switch patch.Type {
	case output.MergePatch:
		document, err = jsonpatch.MergePatch(document, patch.Body)
	case output.StrategicPatch:
		document, err = strategicpatch.StrategicMergePatch(document, patch.Body, corev1.Pod{})
	case output.JSONPatch:
		var p jsonpatch.Patch
		if p, err = jsonpatch.DecodePatch(patch.Body); err == nil {
			document, err = p.Apply(document)
		}
	}
	if err != nil {
		return err
	}
	a.objects[patch.Object.String()] = string(document)
	return nil
}

// sent is the number of patches so far.
func (a *api) sent() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.patches)
}

// looked is the number of reads so far.
func (a *api) looked() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reads
}

// put is somebody else's write.
func (a *api) put(object output.Object, document string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.objects[object.String()] = document
}

func (a *api) fail(read, patch error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.readErr, a.patchErr = read, patch
}

// at is the value at a path of an object.
func (a *api) at(t *testing.T, object output.Object, path ...string) any {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	var value any
	if err := json.Unmarshal([]byte(a.objects[object.String()]), &value); err != nil {
		t.Fatal(err)
	}
	for _, token := range path {
		object, _ := value.(map[string]any)
		value = object[token]
	}
	return value
}

func (a *api) condition(t *testing.T, object output.Object, kind string) map[string]any {
	t.Helper()
	conditions, _ := a.at(t, object, "status", "conditions").([]any)
	for _, c := range conditions {
		if c, _ := c.(map[string]any); c["type"] == kind {
			return c
		}
	}
	return nil
}

var (
	errDown = errors.New("API server is down")

	pod        = output.Pod(identity.Pod{Namespace: "games", Name: "gs-0", UID: "u-1"})
	gameserver = output.Object{Group: "game.kruise.io", Version: "v1alpha1", Resource: "gameservers", Namespace: "games", Name: "gs-0"}
)

func newAPI() *api {
	return &api{objects: map[string]string{
		pod.String(): `{"metadata":{"name":"gs-0","uid":"u-1","resourceVersion":"7"},"status":{"conditions":[
			{"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`,
		gameserver.String(): `{"metadata":{"name":"gs-0","resourceVersion":"9"},"spec":{"opsState":"None","ports":[{"name":"a"},{"name":"b"}]}}`,
	}}
}

func idle() result.Entry {
	return result.Entry{State: result.Succeeded, Value: "idle", Message: "idle"}
}
func allocated() result.Entry { return result.Entry{State: result.Succeeded, Value: "allocated"} }
func dead() result.Entry {
	return result.Entry{State: result.Failed, Value: "Failed", Message: "connection refused"}
}

// policies are the policies of the KEP.
func policies() []output.Policy {
	const cost = "controller.kubernetes.io/pod-deletion-cost"
	return []output.Policy{
		{State: "idle", Labels: map[string]string{"gameserver-idle": "true"}, Annotations: map[string]string{cost: "-10"}},
		{State: "allocated", Labels: map[string]string{"gameserver-idle": "false"}, Annotations: map[string]string{cost: "10"}},
		{State: "unknown", Labels: map[string]string{"gameserver-idle": "false"}, Annotations: map[string]string{cost: "5"}},
	}
}

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writing is an API server that takes everything, and writes down what was written.
type writing struct {
	client.Client
	mu      *sync.Mutex
	written *[]string
}

func (c writing) write(verb string, object client.Object, more string) error {
	text, err := json.Marshal(object)
	c.mu.Lock()
	defer c.mu.Unlock()
	*c.written = append(*c.written, fmt.Sprint(verb, " ", string(text), more))
	return err
}

func (c writing) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	return c.write("create", object, "")
}

func (c writing) Delete(_ context.Context, object client.Object, _ ...client.DeleteOption) error {
	return c.write("delete", object, "")
}

func (c writing) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	return c.write("patch", object, " "+string(data))
}

// TestPoliciesOfAnAttackerAreComplete has an API server that refuses nothing: each attack writes what it is to, and leaves no word to be replaced.
func TestPoliciesOfAnAttackerAreComplete(t *testing.T) {
	t.Parallel()
	for name, one := range attacksByPolicies() {
		var written []string
		a := attacker{Client: writing{mu: &sync.Mutex{}, written: &written}, namespace: "attacker", other: "victims", share: fewerThings, attack: name}
		if err := one.do(t.Context(), a); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		all := strings.Join(written, "\n")
		if !strings.Contains(all, `"InPlaceUpdatePolicy"`) && !strings.Contains(all, "refit.dev/held") {
			t.Errorf("%s: no policy was written: %.500s", name, all)
		}
		if strings.Contains(all, "$") {
			t.Errorf("%s: a word is not replaced: %.500s", name, all)
		}
		for _, line := range written {
			if !strings.Contains(line, `"namespace":"attacker"`) && len(one.words) == 0 {
				t.Errorf("%s: outside of the namespace of the attacker, and not to be refused: %.500s", name, line)
			}
		}
	}
}

// TestEachTokenIsTriedBothWays has an API server that refuses everything: then no attack with a token may pass as harmless that has to be taken, and
// each token is used for writes that are to be taken, and for some that are to be refused.
func TestEachTokenIsTriedBothWays(t *testing.T) {
	t.Parallel()
	taken, refused := map[string]int{}, map[string]int{}
	for name, one := range attacksByTokens() {
		program, _, _ := strings.Cut(name, ",")
		if len(one.words) == 0 {
			taken[program]++
		} else {
			refused[program]++
		}
	}
	for _, program := range []string{"daemon", "manager", "sidecar", "certificates"} {
		if taken[program] == 0 || refused[program] < 5 {
			t.Errorf("%s: %d writes that are taken, %d that are refused", program, taken[program], refused[program])
		}
	}
	no := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web", nil)
	if err := (attacker{}).takes(t.Context(), "a write", func(context.Context) error { return no }); err == nil || refusal(err) {
		t.Errorf("a refusal of what has to be taken passes as one: %v", err)
	}
	if err := (attacker{}).takes(t.Context(), "a write", func(context.Context) error { return nil }); err != nil {
		t.Errorf("what is taken: %v", err)
	}
}

// TestAttacksAreChosenByName has the names that documents give.
func TestAttacksAreChosenByName(t *testing.T) {
	t.Parallel()
	all, err := chosen("")
	if err != nil || len(all) < 60 {
		t.Fatalf("%d attacks: %v", len(all), err)
	}
	some, err := chosen("^certificates,")
	if err != nil || len(some) != len(attacksByCertificates()) {
		t.Errorf("%d attacks with the token of the certificates Job: %v", len(some), err)
	}
	for _, wrong := range []string{"no such attack", "("} {
		if _, err := chosen(wrong); err == nil {
			t.Errorf("%q chooses something", wrong)
		}
	}
	t.Logf("%d attacks, %d by tokens", len(all), len(attacksByTokens()))
}

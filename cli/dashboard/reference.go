package dashboard

import (
	"fmt"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/internal/console"
)

// Kinds of rollouts, as commands name them.
const (
	kindRestart    = "restartrollout"
	kindPolicy     = "inplaceupdatepolicy"
	kindSidecarSet = "sidecarset"
)

// reference names the object of a page or of an action.
type reference struct{ kind, namespace, name string }

// reference reads the object from a query or a form. A dashboard of one namespace has no pages of others.
func (s *server) reference(values url.Values) (reference, error) {
	of := reference{kind: values.Get("kind"), namespace: values.Get("namespace"), name: values.Get("name")}
	if of.namespace == "" {
		of.namespace = s.Namespace
	}
	if s.Namespace != "" && of.namespace != s.Namespace {
		return of, fmt.Errorf("%w: this dashboard shows namespace %s only; kubectl refit dashboard --all-namespaces shows all", console.ErrUsage, s.Namespace)
	}
	return of, nil
}

func (r reference) String() string { return r.kind + "/" + r.name }

func (r reference) key() client.ObjectKey {
	return client.ObjectKey{Namespace: r.namespace, Name: r.name}
}

// query returns the object as a query, with more pairs of names and values.
func (r reference) query(more ...string) string {
	values := url.Values{"name": {r.name}}
	if r.kind != "" {
		values.Set("kind", r.kind)
	}
	if r.namespace != "" && r.kind != kindSidecarSet {
		values.Set("namespace", r.namespace)
	}
	for i := 0; i+1 < len(more); i += 2 {
		values.Set(more[i], more[i+1])
	}
	return "?" + values.Encode()
}

// link returns the page of an object that status shows as KIND/NAME, relative to the others; empty if it has none.
func link(name, namespace string) string {
	kind, name, _ := strings.Cut(name, "/")
	switch kind {
	case kindRestart, kindPolicy:
		return "rollout" + reference{kind, namespace, name}.query()
	case kindSidecarSet:
		return "sidecarset" + reference{kind: kind, name: name}.query()
	case "pod":
		return "pod" + reference{"", namespace, name}.query()
	}
	return ""
}

// rowKey identifies an object in a table.
func rowKey(object metav1.Object) string { return object.GetNamespace() + "/" + object.GetName() }

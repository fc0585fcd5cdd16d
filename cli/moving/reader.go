package moving

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/cli/openkruise"
	"github.com/refit-project/refit/internal/foreign"
)

// page is how many objects are held in memory at a time.
const page = 250

// first is how many objects are read if a number and a few names are enough.
const first = 3

// examiner reads the cluster, and collects the decisions of package openkruise.
type examiner struct {
	Config
	found   openkruise.Collection
	unread  []Unread
	cluster *openkruise.Cluster

	// kruise is the namespace of kruise-manager, release the Helm release of refit-manager; taken means that the latter
	// copies revisions.
	kruise, release string
	taken           bool
	// served are the lists of the kinds of apps.kruise.io, in the stored version if it is served; used are their objects.
	served map[string]schema.GroupVersionKind
	used   map[string]openkruise.Objects
}

// note records that something could not be read. A kind that is not served has no objects.
func (e *examiner) note(what string, err error) {
	switch {
	case err == nil, meta.IsNoMatchError(err), apierrors.IsNotFound(err):
	case apierrors.IsForbidden(err):
		e.unread = append(e.unread, Unread{What: what, Message: "you may not read them; a role with the verbs get and list for them allows it"})
	default:
		e.unread = append(e.unread, Unread{What: what, Message: err.Error(), err: err})
	}
}

// each lists objects page by page, and calls do for each. empty must be an empty list of the kind, because decoders append
// to it.
func (e *examiner) each(ctx context.Context, empty client.ObjectList, do func(client.Object) error, options ...client.ListOption) error {
	for token := ""; ; {
		list, ok := empty.DeepCopyObject().(client.ObjectList)
		if !ok {
			return fmt.Errorf("a list of %T", empty)
		}
		if err := e.API.List(ctx, list, append([]client.ListOption{client.Limit(page), client.Continue(token)}, options...)...); err != nil {
			return err
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			object, ok := item.(client.Object)
			if !ok {
				return fmt.Errorf("a list of %T", item)
			}
			return do(object)
		})
		if token = list.GetContinue(); err != nil || token == "" {
			return err
		}
	}
}

// count lists the first few objects of a kind, without their contents.
func (e *examiner) count(ctx context.Context, kind schema.GroupVersionKind) (openkruise.Objects, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	if err := e.API.List(ctx, list, client.Limit(first)); err != nil {
		return openkruise.Objects{}, err
	}
	var objects openkruise.Objects
	for i := range list.Items {
		objects.Add(name(&list.Items[i]))
	}
	if more := list.RemainingItemCount; more != nil {
		objects.Count += int(*more)
	}
	return objects, nil
}

func name(object metav1.Object) string {
	if object.GetNamespace() == "" {
		return object.GetName()
	}
	return object.GetNamespace() + "/" + object.GetName()
}

// objects calls do with each object of a kind of apps.kruise.io as JSON. A kind that is not served has none.
func (e *examiner) objects(ctx context.Context, kind string, do func(text []byte) error) error {
	list, ok := e.served[kind]
	if !ok {
		return nil
	}
	return e.decoded(ctx, list, do)
}

// errUnreadable means that one object could not be decoded.
var errUnreadable = errors.New("it cannot be decoded")

// decoded calls do with each object of a kind as JSON. An object that cannot be decoded is reported and skipped.
func (e *examiner) decoded(ctx context.Context, list schema.GroupVersionKind, do func(text []byte) error) error {
	items := &unstructured.UnstructuredList{}
	items.SetGroupVersionKind(list)
	return e.each(ctx, items, func(object client.Object) error {
		item, ok := object.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("a list of %T", object)
		}
		text, err := item.MarshalJSON()
		if err == nil {
			err = do(text)
		}
		if errors.Is(err, errUnreadable) {
			e.note(item.GetKind()+" "+name(item), err)
			return nil
		}
		return err
	})
}

// decode decodes an object that others have written.
func decode(text []byte, into any) error {
	if err := foreign.Object(text, into); err != nil {
		return fmt.Errorf("%w: %w", errUnreadable, err)
	}
	return nil
}

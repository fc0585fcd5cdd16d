// Package stalecache stands in for a cache that is behind the API server.
package stalecache

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Client reads Object as it was, and everything else from its Client, to which all writes go. Of deletions it checks the
// UID that they have as precondition, which the fake client of controller-runtime does not.
type Client struct {
	client.Client
	Object client.Object
}

// Get implements client.Reader.
func (c Client) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if reflect.TypeOf(into) == reflect.TypeOf(c.Object) && key == client.ObjectKeyFromObject(c.Object) {
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(c.Object.DeepCopyObject()).Elem())
		return nil
	}
	return c.Client.Get(ctx, key, into, opts...)
}

// List implements client.Reader.
func (c Client) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := c.Client.List(ctx, list, opts...); err != nil {
		return err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	for i, item := range items {
		if reflect.TypeOf(item) == reflect.TypeOf(c.Object) && client.ObjectKeyFromObject(item.(client.Object)) == client.ObjectKeyFromObject(c.Object) {
			items[i] = c.Object.DeepCopyObject()
		}
	}
	return meta.SetList(list, items)
}

// Delete implements client.Writer.
func (c Client) Delete(ctx context.Context, object client.Object, opts ...client.DeleteOption) error {
	wanted := (&client.DeleteOptions{}).ApplyOptions(opts).Preconditions
	if wanted != nil && wanted.UID != nil {
		stored := reflect.New(reflect.TypeOf(object).Elem()).Interface().(client.Object) //nolint:forcetypeassert // of the same type
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(object), stored); err != nil {
			return err
		}
		if is := stored.GetUID(); is != *wanted.UID {
			return apierrors.NewConflict(schema.GroupResource{}, object.GetName(), fmt.Errorf("its UID is %s, the precondition is %s", is, *wanted.UID))
		}
	}
	return c.Client.Delete(ctx, object, opts...)
}

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/render"
)

// Render prints what the SidecarSets in files would inject into the pod in files, without a cluster; "-" means in.
func Render(out io.Writer, in io.Reader, files []string) error {
	var objects render.Objects
	if err := objects.ReadFiles(in, files); err != nil {
		return err
	}
	return render.Print(out, &objects)
}

// RenderFromCluster prints what the SidecarSets of the cluster would inject into a pod, or into the next pod of a workload.
func (c Config) RenderFromCluster(ctx context.Context, out io.Writer, kind schema.GroupVersionKind, namespace, name string) error {
	var objects render.Objects
	of := &unstructured.Unstructured{}
	of.SetGroupVersionKind(kind)
	if err := c.API.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, of); err != nil {
		return err
	}
	raw, err := json.Marshal(of)
	if err != nil {
		return err
	}
	if err := objects.Read(raw); err != nil {
		return err
	}
	var within corev1.Namespace
	if err := c.API.Get(ctx, client.ObjectKey{Name: namespace}, &within); err == nil {
		objects.Namespaces = map[string]map[string]string{namespace: within.Labels}
	} else if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read labels of the namespace: %w", err)
	}
	var sets v1beta1.SidecarSetList
	if err := c.API.List(ctx, &sets); err != nil {
		return err
	}
	for i := range sets.Items {
		objects.SidecarSets = append(objects.SidecarSets, &sets.Items[i])
	}
	return render.Print(out, &objects)
}

package bundle_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cli/bundle"
)

// files are what an archive has.
func files(t *testing.T, archive io.Reader) map[string]string {
	t.Helper()
	zipped, err := gzip.NewReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for from := tar.NewReader(zipped); ; {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(from)
		if err != nil {
			t.Fatal(err)
		}
		found[header.Name] = string(text)
	}
}

func written(t *testing.T, forbidden string) map[string]string {
	t.Helper()
	return writtenFrom(t, func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if kind := list.GetObjectKind().GroupVersionKind().Kind; forbidden != "" && kind == forbidden {
			return apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "", nil)
		}
		return c.List(ctx, list, opts...)
	})
}

// writtenFrom returns what an archive has if list answers the requests.
func writtenFrom(t *testing.T, list func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error) map[string]string {
	t.Helper()
	kinds := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(kinds), appsv1.AddToScheme(kinds), v1beta1.AddToScheme(kinds), v1alpha1.AddToScheme(kinds)); err != nil {
		t.Fatal(err)
	}
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "mesh", Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "s3cret"}}}
	set.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "proxy", Env: []corev1.EnvVar{{Name: "PASSWORD", Value: "s3cret"}}}}}
	manager := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "refit-system", Name: "refit-manager-0"}}
	manager.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "manager", RestartCount: 1}}
	event := func(namespace, name, component string) *corev1.Event {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Source: corev1.EventSource{Component: component}}
	}
	api := fake.NewClientBuilder().WithScheme(kinds).WithObjects(set, manager, event("shop", "by-refit", "refit-manager"), event("shop", "by-kubelet", "kubelet"), event("refit-system", "of-the-system", "kubelet"),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "refit-system", Name: "key"}, Data: map[string][]byte{"key": []byte("s3cret")}}).
		WithInterceptorFuncs(interceptor.Funcs{List: list}).Build()
	var out bytes.Buffer
	err := bundle.Write(t.Context(), bundle.Config{
		API: api, System: "refit-system", Now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), Doctor: func(w io.Writer) { fmt.Fprintln(w, "ok manager") },
		Logs: func(_ context.Context, namespace, pod string, options *corev1.PodLogOptions) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(fmt.Sprintf("%s/%s %s previous=%v\n", namespace, pod, options.Container, options.Previous))), nil
		},
	}, &out)
	if err != nil {
		t.Fatal(err)
	}
	return files(t, &out)
}

// A probe of a tenant printed a control character: one Event with it kept all Events out of the archive.
func TestTextThatIsNoYAMLIsInTheArchive(t *testing.T) {
	t.Parallel()
	found := writtenFrom(t, func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		err := c.List(ctx, list, opts...)
		if all, ok := list.(*unstructured.UnstructuredList); ok && all.GetKind() == "EventList" && err == nil {
			for i := range all.Items {
				all.Items[i].Object["message"] = "\x7f"
			}
		}
		return err
	})
	if events := found["refit/objects/events.json"]; !strings.Contains(events, `"name": "by-refit"`) || strings.Contains(found["refit/errors.txt"], "events") {
		t.Errorf("events %q, errors %q", events, found["refit/errors.txt"])
	}
}

func TestArchiveHasObjectsEventsAndLogs(t *testing.T) {
	t.Parallel()
	found := written(t, "")
	for file, words := range map[string]string{
		"refit/doctor.txt": "ok manager", "refit/objects/sidecarsets.yaml": "name: mesh", "refit/objects/system-pods.yaml": "name: refit-manager-0",
		"refit/objects/events.yaml": "name: by-refit", "refit/logs/refit-manager-0-manager.log": "refit-system/refit-manager-0 manager previous=false",
		"refit/logs/refit-manager-0-manager-previous.log": "previous=true", "refit/objects/restartrollouts.yaml": "kind: List", "refit/objects/imagelistpulljobs.yaml": "kind: List",
	} {
		if !strings.Contains(found[file], words) {
			t.Errorf("%s: no %q in %q", file, words, found[file])
		}
	}
	if events := found["refit/objects/events.yaml"]; strings.Contains(events, "by-kubelet") || !strings.Contains(events, "of-the-system") {
		t.Errorf("%s", events)
	}
	if _, failed := found["refit/errors.txt"]; failed {
		t.Errorf("%s", found["refit/errors.txt"])
	}
}

func TestArchiveHasNoSecrets(t *testing.T) {
	t.Parallel()
	for file, text := range written(t, "") {
		if strings.Contains(text, "s3cret") {
			t.Errorf("%s:\n%s", file, text)
		}
	}
}

// A user without all permissions gets the rest, and what is missing is said.
func TestArchiveSaysWhatCouldNotBeRead(t *testing.T) {
	t.Parallel()
	found := written(t, "NodeImageList")
	if text := found["refit/errors.txt"]; !strings.Contains(text, "nodeimages: ") || !strings.Contains(text, "forbidden") {
		t.Errorf("%q", text)
	}
	if found["refit/objects/sidecarsets.yaml"] == "" {
		t.Error("no SidecarSets")
	}
}

// Events of others fill the first pages in a busy cluster.
func TestEventsOfRefitAreFoundAmongManyOthers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pages  func(page int) (events int, component string, more bool)
		want   int    // events
		errors string // empty for no errors.txt
	}{
		"on the second page": {func(page int) (int, string, bool) {
			if page == 0 {
				return 500, "kubelet", true
			}
			return 1, "refit-manager", false
		}, 1, ""},
		"as many as are kept":   {func(page int) (int, string, bool) { return 250, "refit-daemon", page == 0 }, 500, ""},
		"more than are kept":    {func(page int) (int, string, bool) { return 300, "refit-daemon", page == 0 }, 500, "events: only the first 500 of Refit\n"},
		"in too many of others": {func(page int) (int, string, bool) { return 500, "kubelet", true }, 0, "events: only what is of Refit among the first 10000\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := writtenFrom(t, func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				events, ok := list.(*unstructured.UnstructuredList)
				if !ok || events.GetKind() != "EventList" {
					return c.List(ctx, list, opts...)
				}
				var options client.ListOptions
				options.ApplyOptions(opts)
				page, _ := strconv.Atoi(options.Continue) // 0 if it is empty
				n, component, more := tc.pages(page)
				for i := range n {
					event := unstructured.Unstructured{Object: map[string]any{"source": map[string]any{"component": component}}}
					event.SetName(fmt.Sprintf("event-%d-%d", page, i))
					events.Items = append(events.Items, event)
				}
				if more {
					events.SetContinue(strconv.Itoa(page + 1))
				}
				return nil
			})
			if got := strings.Count(found["refit/objects/events.yaml"], "name: event-"); got != tc.want || found["refit/errors.txt"] != tc.errors {
				t.Errorf("%d events, errors %q", got, found["refit/errors.txt"])
			}
		})
	}
}

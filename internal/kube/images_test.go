package kube_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/kube"
)

func servesImages(version string) metav1.APIResourceList {
	return metav1.APIResourceList{
		GroupVersion: "apps.kruise.io/" + version, APIResources: []metav1.APIResource{{Name: "imagepulljobs"}, {Name: "nodeimages"}},
	}
}

func object(version, kind, name string, more map[string]any) map[string]any {
	fields := map[string]any{
		"apiVersion": "apps.kruise.io/" + version, "kind": kind,
		"metadata": map[string]any{"name": name, "namespace": "shop", "uid": "u1", "resourceVersion": "7"},
	}
	for key, value := range more {
		fields[key] = value
	}
	return fields
}

// Clusters of OpenKruise 1.8 and before serve v1alpha1 alone; callers do not notice.
func TestImagePullJobsInEitherVersion(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v1beta1", "v1alpha1"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			jobs := "/apis/apps.kruise.io/" + version + "/namespaces/shop/imagepulljobs"
			stored := object(version, "ImagePullJob", "pull", map[string]any{
				"spec": map[string]any{"image": "app:2"}, "status": map[string]any{"desired": 3, "message": "pulling"},
			})
			client, server := newClient(t, map[string]any{
				"GET /apis/apps.kruise.io/" + version: servesImages(version),
				"POST " + jobs:                        stored, "GET " + jobs + "/pull": stored, "DELETE " + jobs + "/pull": stored,
				"GET /apis/apps.kruise.io/" + version + "/nodeimages/node-1": object(version, "NodeImage", "node-1", map[string]any{
					"spec": map[string]any{"images": map[string]any{"app": map[string]any{"tags": []any{map[string]any{"tag": "2"}}}}},
				}),
			})
			api, err := client.ImagePullJobs(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", GenerateName: "pull-", UID: "u1"}}
			job.Spec.Image = "app:2"
			created, err := api.Create(t.Context(), job)
			if err != nil || created.Name != "pull" || created.Spec.Image != "app:2" {
				t.Errorf("created %+v, %v", created, err)
			}
			read, err := api.Get(t.Context(), "shop", "pull")
			if err != nil || read.Status.Desired != 3 || read.Status.Message != "pulling" {
				t.Errorf("read %+v, %v", read, err)
			}
			node, err := api.Node(t.Context(), "node-1")
			if err != nil || len(node.Spec.Images["app"].Tags) != 1 {
				t.Errorf("NodeImage %+v, %v", node, err)
			}
			if err := api.Delete(t.Context(), created); err != nil {
				t.Error(err)
			}
			if asked := server.all(); !strings.Contains(asked, `"apiVersion":"apps.kruise.io/`+version+`","kind":"ImagePullJob"`) && !strings.Contains(asked, `"kind":"ImagePullJob","apiVersion":"apps.kruise.io/`+version) {
				t.Errorf("asked %s: want a job of %s", asked, version)
			}
			if !strings.Contains(server.all(), `"preconditions":{"uid":"u1"}`) {
				t.Errorf("asked %s: want that no other job of the name is deleted", server.all())
			}
		})
	}
}

func TestImagesMayNotBeServed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answers map[string]any
		want    func(error) bool
	}{
		"no group": {nil, func(err error) bool {
			return errors.Is(err, kube.ErrImagePullJobsNotServed) || errors.Is(err, kube.ErrNodeImagesNotServed)
		}},
		"requests alone": {map[string]any{"GET /apis/apps.kruise.io/v1beta1": served("v1beta1")}, func(err error) bool {
			return errors.Is(err, kube.ErrImagePullJobsNotServed) || errors.Is(err, kube.ErrNodeImagesNotServed)
		}},
		"no answer": {map[string]any{"GET /apis/apps.kruise.io/v1beta1": http.StatusInternalServerError}, func(err error) bool {
			return err != nil && !errors.Is(err, kube.ErrImagePullJobsNotServed) && !errors.Is(err, kube.ErrNodeImagesNotServed)
		}},
	} {
		client, _ := newClient(t, test.answers)
		if _, err := client.ImagePullJobs(t.Context()); !test.want(err) {
			t.Errorf("%s: ImagePullJobs: %v", name, err)
		}
		if _, err := client.NodeImages(t.Context()); !test.want(err) {
			t.Errorf("%s: NodeImages: %v", name, err)
		}
	}
}

// A merge patch keeps members that it does not name: images that are no longer listed are removed by null.
func TestImageStatusReplacesTheOneBefore(t *testing.T) {
	t.Parallel()
	const path = "/apis/apps.kruise.io/v1beta1/nodeimages/node-1/status"
	for name, test := range map[string]struct {
		answer any
		check  func(error) bool
	}{
		"written":                     {object("v1beta1", "NodeImage", "node-1", nil), func(err error) bool { return err == nil }},
		"the object is another now":   {http.StatusConflict, apierrors.IsConflict},
		"the object has been deleted": {http.StatusNotFound, apierrors.IsNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, server := newClient(t, map[string]any{"GET /apis/apps.kruise.io/v1beta1": servesImages("v1beta1"), "PATCH " + path: test.answer})
			api, err := client.NodeImages(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			node := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "u1"}}
			status := v1beta1.NodeImageStatus{Desired: 1, ImageStatuses: map[string]v1beta1.ImageStatus{"app": {}}}
			if err := api.WriteStatus(t.Context(), node, []string{"app", "removed"}, status); !test.check(err) {
				t.Errorf("%v", err)
			}
			for _, want := range []string{`"metadata":{"uid":"u1"}`, `"removed":null`, `"app":{`, `"desired":1`, `"failed":0`} {
				if !strings.Contains(server.all(), want) {
					t.Errorf("asked %s, want %s", server.all(), want)
				}
			}
		})
	}
}

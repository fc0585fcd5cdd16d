package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/refit-project/refit/internal/console"
)

// served are the kinds of an API server without objects, by the path of their group and version.
var served = map[string][]metav1.APIResource{
	"/api/v1": {{Name: "pods", Kind: "Pod", Namespaced: true}, {Name: "secrets", Kind: "Secret", Namespaced: true}, {Name: "namespaces", Kind: "Namespace"}},
	"/apis/apps/v1": {
		{Name: "deployments", Kind: "Deployment", Namespaced: true}, {Name: "statefulsets", Kind: "StatefulSet", Namespaced: true},
		{Name: "replicasets", Kind: "ReplicaSet", Namespaced: true}, {Name: "controllerrevisions", Kind: "ControllerRevision", Namespaced: true},
	},
	"/apis/apps.kruise.io/v1beta1": {
		{Name: "containerrecreaterequests", Kind: "ContainerRecreateRequest", Namespaced: true}, {Name: "podprobemarkers", Kind: "PodProbeMarker", Namespaced: true},
		{Name: "sidecarsets", Kind: "SidecarSet"}, {Name: "nodepodprobes", Kind: "NodePodProbe"},
		{Name: "imagepulljobs", Kind: "ImagePullJob", Namespaced: true},
	},
	"/apis/refit.dev/v1alpha1": {
		{Name: "restartrollouts", Kind: "RestartRollout", Namespaced: true}, {Name: "restartschedules", Kind: "RestartSchedule", Namespaced: true},
		{Name: "inplaceupdatepolicies", Kind: "InPlaceUpdatePolicy", Namespaced: true},
	},
}

// emptyServer is an API server without objects.
func emptyServer(t *testing.T) *httptest.Server {
	t.Helper()
	return serve(t, emptyAnswer)
}

// serve is an API server that answers requests about objects in this way.
func serve(t *testing.T, about func(path string) (code int, answer any)) *httptest.Server {
	t.Helper()
	groups := metav1.APIGroupList{}
	for path := range served {
		if group, version, ok := strings.Cut(strings.TrimPrefix(path, "/apis/"), "/"); ok && strings.HasPrefix(path, "/apis/") {
			of := metav1.GroupVersionForDiscovery{GroupVersion: group + "/" + version, Version: version}
			groups.Groups = append(groups.Groups, metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{of}, PreferredVersion: of})
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code, answer := http.StatusOK, any(nil)
		switch resources, ok := served[r.URL.Path]; {
		case ok:
			answer = metav1.APIResourceList{GroupVersion: strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/apis/"), "/api/"), APIResources: resources}
		case r.URL.Path == "/api":
			answer = metav1.APIVersions{Versions: []string{"v1"}}
		case r.URL.Path == "/apis":
			answer = groups
		default:
			if code, answer = about(r.URL.Path); code == 0 {
				t.Errorf("unexpected request %s %s", r.Method, r.URL)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	return server
}

// emptyAnswer is the answer for a kind, an empty list, or for an object, that it is not there.
func emptyAnswer(path string) (code int, answer any) {
	for version, resources := range served {
		rest, ok := strings.CutPrefix(path, version+"/")
		if namespaced, found := strings.CutPrefix(rest, "namespaces/default/"); found {
			rest = namespaced
		}
		for _, resource := range resources {
			switch name, named := strings.CutPrefix(rest, resource.Name+"/"); {
			case ok && named:
				group, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(version, "/apis/"), "/api/v1"), "/")
				status := apierrors.NewNotFound(schema.GroupResource{Group: group, Resource: resource.Name}, name).Status()
				status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
				return http.StatusNotFound, status
			case ok && rest == resource.Name:
				return http.StatusOK, map[string]any{"items": []any{}}
			}
		}
	}
	return 0, nil
}

// ofNothing returns command lines about an object that is not there, with its resource.
func ofNothing(t *testing.T) map[string]string {
	t.Helper()
	page := filepath.Join(t.TempDir(), "page.html")
	const pods, deployments, policies = "pods", "deployments.apps", "inplaceupdatepolicies.refit.dev"
	const rollouts, schedules, sets, requests = "restartrollouts.refit.dev", "restartschedules.refit.dev", "sidecarsets.apps.kruise.io", "containerrecreaterequests.apps.kruise.io"
	return map[string]string{
		"restart pod/nope -c app": pods, "restart pod nope --dry-run": pods, "restart deployment/nope": deployments,
		"set image pod/nope app=app:2": pods, "set resources pod/nope -c app --requests=cpu=1": pods, "set env pod/nope A=b": pods,
		"set image deployment/nope app=app:2": deployments, "set image inplaceupdatepolicy/nope app=app:2 --dry-run": policies,
		"rollout status deployment/nope": deployments, "rollout status deployment/nope --watch=false": deployments, "rollout pause deployment/nope": deployments,
		"rollout resume deployment/nope": deployments, "rollout promote deployment/nope": deployments, "rollout undo deployment/nope": deployments,
		"rollout history deployment/nope": deployments, "rollout status iup/nope": policies, "rollout pause iup/nope": policies,
		"rollout status restartrollout/nope": rollouts, "rollout status rr/nope --watch=false": rollouts, "rollout pause rr/nope": rollouts,
		"rollout resume rr/nope": rollouts, "rollout abort rr/nope": rollouts,
		"rollout status sidecarset/nope": sets, "rollout status sidecarset/nope --watch=false": sets, "rollout pause sidecarset/nope": sets,
		"rollout resume sidecarset/nope": sets, "rollout undo sidecarset/nope": sets, "rollout history sidecarset/nope": sets,
		"sidecarset status nope": sets, "sidecarset pause nope": sets, "sidecarset resume nope": sets, "sidecarset undo nope": sets, "sidecarset history nope": sets,
		"sidecarset render deployment/nope": deployments, "sidecarset render pod/nope": pods,
		"schedule trigger nope": schedules, "schedule suspend nope": schedules, "schedule resume nope": schedules,
		"files update nope --version=2 --url=https://files.example.com/a": pods, "files rollback nope": pods, "files history nope": pods,
		"why nope": pods, "why deployment/nope": deployments, "logs nope": pods, "probe ls nope": pods,
		"timeline crr/nope": requests, "timeline restartrollout/nope": rollouts, "timeline iup/nope": policies,
		// as --output=name prints them
		"rollout status restartrollout.refit.dev/nope": rollouts, "rollout pause sidecarset.apps.kruise.io/nope": sets, "rollout pause deployment.apps/nope": deployments,
		"rollout resume inplaceupdatepolicy.refit.dev nope": policies, "timeline containerrecreaterequest.apps.kruise.io/nope": requests,
		"why deployment.apps/nope": deployments, "set image deployment.apps/nope app=app:2": deployments,
		"dashboard restartrollout/nope --record=" + page: rollouts, "dashboard iup/nope --record=" + page: policies,
	}
}

// run runs a command line against a server.
func run(t *testing.T, server *httptest.Server, line string) error {
	t.Helper()
	root := command("test")
	root.SetArgs(append(strings.Fields(line), "--server="+server.URL, "--kubeconfig=", "--namespace=default"))
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	return root.ExecuteContext(t.Context())
}

// Scripts search for the words of kubectl.
func TestObjectThatIsNotThereIsSaidInTheWordsOfKubectl(t *testing.T) {
	t.Parallel()
	server := emptyServer(t)
	for line, resource := range ofNothing(t) {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			err := run(t, server, line)
			if want := fmt.Sprintf("Error from server (NotFound): %s %q not found", resource, "nope"); err == nil || console.Line(err) != want || console.ExitCode(err) != console.ExitFailed {
				t.Errorf("exit code %d: %v", console.ExitCode(err), err)
			}
		})
	}
}

// A missing right has the same exit code in all commands, whatever they would read or write first.
func TestMissingRightIsARefusal(t *testing.T) {
	t.Parallel()
	server := serve(t, func(path string) (int, any) {
		status := apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "nope", errors.New("not allowed")).Status()
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		return http.StatusForbidden, status
	})
	lines := ofNothing(t)
	for _, line := range []string{
		"status", "watch", "probe ls -A", "schedule ls", "sidecarset status", "pull nginx:1", "restart -l app=web", "restart deployment -l app=web", "timeline crr/nope",
		"files update -l app=web --version=2 --url=https://files.example.com/a",
	} {
		lines[line] = ""
	}
	for line := range lines {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			if err := run(t, server, line); console.ExitCode(err) != console.ExitRefused || !apierrors.IsForbidden(err) {
				t.Errorf("exit code %d: %v", console.ExitCode(err), err)
			}
		})
	}
}

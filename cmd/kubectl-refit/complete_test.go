package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// completed is what cobra's __complete prints, as kubectl reads it from kubectl_complete-refit: a value in each line, then the
// directive for the shell.
func completed(t *testing.T, args ...string) string {
	t.Helper()
	root := command("test")
	var out bytes.Buffer
	root.SetArgs(append([]string{"__complete"}, args...))
	root.SetOut(&out)
	root.SetErr(&bytes.Buffer{})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func deployments(names ...string) appsv1.DeploymentList {
	list := appsv1.DeploymentList{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DeploymentList"}}
	for _, name := range names {
		list.Items = append(list.Items, appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}})
	}
	return list
}

// apiServer has pod web with containers app and log, Deployment web with container server, and namespace shop.
func apiServer(t *testing.T) (kubeconfig string) {
	t.Helper()
	pod := corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}}
	pod.Spec.Containers = []corev1.Container{{Name: "app"}, {Name: "log"}}
	list := func(names ...string) metav1.PartialObjectMetadataList {
		l := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
		for _, name := range names {
			l.Items = append(l.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		return l
	}
	deployment := deployments("web").Items[0]
	deployment.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "server"}}
	answers := map[string]any{
		"/api":  metav1.APIVersions{Versions: []string{"v1"}},
		"/apis": metav1.APIGroupList{Groups: []metav1.APIGroup{{Name: "apps", Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "apps/v1", Version: "v1"}}}}},
		"/apis/apps/v1": metav1.APIResourceList{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{
			{Name: "deployments", SingularName: "deployment", ShortNames: []string{"deploy"}, Kind: "Deployment", Namespaced: true, Verbs: metav1.Verbs{"list"}},
		}},
		"/apis/apps/v1/namespaces/shop/deployments": list("web", "api"), "/apis/apps/v1/namespaces/shop/deployments/web": deployment,
		"/apis/apps/v1/namespaces/shop/deployments?labelSelector=tier%3Dfront": deployments("web", "api"),
		"/apis/apps/v1/namespaces/shop/deployments?labelSelector=tier%3Dback":  deployments(),
		"/api/v1": metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "pods", SingularName: "pod", Kind: "Pod", Namespaced: true}, {Name: "namespaces", SingularName: "namespace", Kind: "Namespace"},
		}},
		"/api/v1/namespaces/shop/pods": list("web", "db"), "/api/v1/namespaces": list("shop", "default"), "/api/v1/namespaces/shop/pods/web": pod,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		where := r.URL.Path
		if selector := r.URL.Query().Get("labelSelector"); selector != "" {
			where += "?labelSelector=" + url.QueryEscape(selector)
		}
		answer, found := answers[where]
		if !found {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	config := api.NewConfig()
	config.Clusters["lab"] = &api.Cluster{Server: server.URL}
	config.Contexts["lab-admin"] = &api.Context{Cluster: "lab", Namespace: "shop"}
	config.CurrentContext = "lab-admin"
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

func TestCompletionOfArgumentsAndFlags(t *testing.T) {
	t.Parallel()
	kubeconfig := apiServer(t)
	for line, want := range map[string]string{
		"restart d":                   "deployment/ daemonset/ :6",
		"restart pod/":                "pod/web pod/db :4",
		"restart pod/web ":            "pod/ deployment/ statefulset/ daemonset/ replicaset/ cloneset/ :6",
		"restart pod/web pod/":        "pod/db :4",
		"restart pod web ":            "db :4",
		"restart pod/web -c ":         "app log :4",
		"why ":                        "web db :4",
		"why pod/w":                   "pod/web :4",
		"why web -c l":                "log :4",
		"why web -o ":                 "json yaml :4",
		"logs web --container ":       "app log :4",
		"set image ":                  "pod/ deployment/ statefulset/ daemonset/ :6",
		"set image pod/web a":         "app= :6",
		"set resources pod/web -c ":   "app log :4",
		"timeline ":                   "crr/ restartrollout/ inplaceupdatepolicy/ :6",
		"rollout ":                    "abort history pause promote resume status undo :4",
		"rollout status d":            "deployment/ daemonset/ :6",
		"rollout undo ":               "deployment/ statefulset/ daemonset/ inplaceupdatepolicy/ sidecarset/ :6",
		"rollout abort ":              "restartrollout/ :6",
		"schedule ":                   "ls resume suspend trigger :4",
		"why d":                       "db deployment/ daemonset/ :6",
		"why pod we":                  "web :4",
		"why deployment ":             "web api :4",
		"set image pod w":             "web :4",
		"set image pod web a":         "app= :6",
		"set env pod web A=b -c ":     "app log :4",
		"restart deployment web -c ":  "server :4",
		"rollout status deployment ":  "web api :4",
		"rollout status deploy/web ":  ":4",
		"logs pod ":                   "web db :4",
		"logs web ":                   ":4",
		"files history pods d":        "db :4",
		"probe ls pod ":               ":4",
		"timeline crr/x -o ":          "svg json yaml :4",
		"probe ls d":                  "db :4",
		"status -o ":                  "wide name json yaml jsonpath go-template custom-columns :4",
		"status -n ":                  "shop default :4",
		"status --context ":           "lab-admin :4",
		"status --cluster ":           "lab :4",
		"doctor --system-namespace d": "default :4",
		"pull image --secret ":        ":4",
		"restart -n nowhere pod/":     ":4",
		"pull ":                       ":4",
		"sidecarset ":                 "history pause render resume status undo :4",
		"doctor ":                     ":4",
		"doctor --openkruise=":        "to-refit from-refit both :4",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			var values []string
			for value := range strings.Lines(completed(t, append([]string{"--kubeconfig", kubeconfig}, strings.Split(line, " ")...)...)) {
				name, _, _ := strings.Cut(strings.TrimSpace(value), "\t")
				values = append(values, name)
			}
			if got := strings.Join(values, " "); got != want {
				t.Errorf("%s", got)
			}
		})
	}
}

// Each command that takes arguments completes them or says that it cannot, instead of offering files.
func TestEveryCommandCompletesItsArguments(t *testing.T) {
	t.Parallel()
	var check func(*cobra.Command)
	check = func(cmd *cobra.Command) {
		if !cmd.HasAvailableSubCommands() && cmd.ValidArgsFunction == nil {
			t.Errorf("%s does not", cmd.CommandPath())
		}
		for _, child := range cmd.Commands() {
			check(child)
		}
	}
	check(command("test"))
}

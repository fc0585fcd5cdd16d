package dashboard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// site is a dashboard with the browser of its user.
type site struct {
	api     client.WithWatch
	server  *httptest.Server
	address string // with the token
	base    string // of the pages
	cookie  *http.Cookie
	watched chan string // kinds of lists whose watch has begun
}

// awaitWatch waits for the watch of a kind: a fake client does not send what happens between a list and its watch.
func (s *site) awaitWatch(t *testing.T, kind string) {
	t.Helper()
	for one := range s.watched {
		if one == kind {
			return
		}
	}
}

func object(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(noon), Annotations: map[string]string{v1beta1.AnnotationRequestedBy: "alice"}}
}

func restart(name string, pods int) *v1alpha1.RestartRollout {
	r := &v1alpha1.RestartRollout{ObjectMeta: object("shop", name)}
	r.Spec.TargetRef = &v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web"}
	r.Spec.Containers = v1alpha1.RolloutContainers("app")
	r.Status = v1alpha1.RestartRolloutStatus{ObservedGeneration: 1, RolloutPods: v1alpha1.RolloutPods{MatchedPods: int32(pods)}, RestartedPods: 1, Conditions: []metav1.Condition{
		{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonRestarting, Message: "1 of 3 pods is restarting"},
	}}
	return r
}

func request(name, pod, message string) *v1beta1.ContainerRecreateRequest {
	r := &v1beta1.ContainerRecreateRequest{ObjectMeta: object("shop", name)}
	r.Labels = map[string]string{v1alpha1.LabelRestartRollout: "uid-web-x"}
	r.OwnerReferences = []metav1.OwnerReference{{APIVersion: "refit.dev/v1alpha1", Kind: "RestartRollout", Name: "web-x", UID: "uid-web-x", Controller: new(true)}}
	r.Spec.PodName, r.Spec.Containers = pod, []v1beta1.ContainerRecreateRequestContainer{{Name: "app"}}
	r.Status.Phase, r.Status.Message = v1beta1.ContainerRecreateRequestRecreating, message
	return r
}

func pod(name string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: object("shop", name)}
	p.Labels = map[string]string{"app": "web"}
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "uid-web", Controller: new(true)}}
	p.Spec.NodeName, p.Spec.Containers = "node-1", []corev1.Container{{Name: "app", Image: "app:1"}}
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", Ready: true, RestartCount: 2, ContainerID: "containerd://2", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(noon)}}}}
	return p
}

// shop is a StatefulSet with a restart of its pods.
func shop(pods int) []client.Object {
	set := &appsv1.StatefulSet{ObjectMeta: object("shop", "web")}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.Template.Labels = map[string]string{"app": "web"}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:1"}}
	all := []client.Object{set, restart("web-x", pods), request("web-x-0", "web-0000", "container app: stopping")}
	for i := range pods {
		all = append(all, pod(fmt.Sprintf("web-%04d", i)))
	}
	return all
}

func cluster(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	kinds := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(kinds), appsv1.AddToScheme(kinds), v1beta1.AddToScheme(kinds), v1alpha1.AddToScheme(kinds)); err != nil {
		t.Fatal(err)
	}
	byUID := func(o client.Object) []string { return []string{string(o.(*corev1.Event).InvolvedObject.UID)} }
	byName := func(o client.Object) []string { return []string{o.GetName()} }
	b := fake.NewClientBuilder().WithScheme(kinds).WithObjects(objects...).WithIndex(&corev1.Event{}, "involvedObject.uid", byUID)
	for _, of := range []client.Object{&corev1.Pod{}, &v1alpha1.RestartRollout{}, &v1alpha1.InPlaceUpdatePolicy{}, &v1beta1.SidecarSet{}} {
		b = b.WithIndex(of, "metadata.name", byName)
	}
	return b.Build()
}

func open(t *testing.T, change func(*Config), objects ...client.Object) *site {
	t.Helper()
	s := &site{watched: make(chan string, 1000)}
	s.api = interceptor.NewClient(cluster(t, objects...), interceptor.Funcs{Watch: func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
		stream, err := api.Watch(ctx, list, options...)
		s.watched <- fmt.Sprintf("%T", list)
		return stream, err
	}})
	logs := func(_ context.Context, _, _ string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(fmt.Sprintf("log of %s, previous %t\n", o.Container, o.Previous))), nil
	}
	config := Config{API: s.api, Namespace: "shop", System: "refit-system", Now: func() time.Time { return noon.Add(time.Minute) }, Logs: logs}
	if change != nil {
		change(&config)
	}
	s.server = httptest.NewUnstartedServer(nil)
	handler, address, end := newHandler(config, s.server.Listener.Addr().String())
	s.server.Config.Handler, s.address = handler, address
	s.server.Start()
	s.base = s.server.URL
	t.Cleanup(func() { s.server.CloseClientConnections(); s.server.Close(); end() })
	response := s.send(t, http.MethodGet, strings.TrimPrefix(address, s.server.URL), "", nil)
	for _, cookie := range response.cookies {
		s.cookie, s.base = cookie, s.server.URL+strings.TrimSuffix(cookie.Path, "/")
	}
	if s.cookie == nil {
		t.Fatalf("no cookie: %d %s", response.code, response.body)
	}
	return s
}

type answer struct {
	code    int
	body    string
	header  http.Header
	cookies []*http.Cookie
}

// send sends a request with the cookie, if there is one.
func (s *site) send(t *testing.T, method, path, body string, change func(*http.Request)) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if s.cookie != nil {
		r.AddCookie(s.cookie)
	}
	if method == http.MethodPost {
		r.Header.Set("Origin", s.server.URL)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if change != nil {
		change(r)
	}
	response, err := s.server.Client().Transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, string(content), response.Header, response.Cookies()}
}

func (s *site) get(t *testing.T, path string) answer {
	t.Helper()
	return s.send(t, http.MethodGet, path, "", nil)
}

package dashboard

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

func contains(t *testing.T, got answer, want ...string) {
	t.Helper()
	for _, text := range want {
		if !strings.Contains(got.body, text) {
			t.Errorf("no %q in %d\n%s", text, got.code, got.body)
		}
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	daemon := pod("refit-daemon-a")
	daemon.Namespace, daemon.Labels = "refit-system", map[string]string{"app.kubernetes.io/name": "refit-daemon"}
	images := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	images.Status = v1beta1.NodeImageStatus{Desired: 2, Pulling: 1, ImageStatuses: map[string]v1beta1.ImageStatus{
		"app": {Tags: []v1beta1.ImageTagStatus{{Tag: "2", Phase: v1beta1.ImagePhasePulling, Progress: 40, PulledBytes: 4e6, TotalBytes: 1e7}}},
	}}
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "mesh"}}
	set.Status = v1beta1.SidecarSetStatus{MatchedPods: 7, UpdatedPods: 3}
	s := open(t, nil, append(shop(3), daemon, images, set)...)
	contains(t, s.get(t, "/"), "<h1 id=\"title\">Now in namespace shop</h1>", "In progress: 2 rollouts, 0 requests, 0 image pulls.", ">restartrollout/web-x</a>", ">sidecarset/mesh</a>", "alice")
	rollout := s.get(t, "/rollout?kind=restartrollout&name=web-x")
	contains(t, rollout, `<th scope="col">Pod</th>`, ">web-0000</a>", ">web-0002</a>", "container app: stopping", `<td class="busy">Recreating</td>`, "<td>waiting</td>", "1/3 of the pods of statefulset/web are done.")
	contains(t, s.get(t, "/pod?name=web-0000"), "pod/web-0000", "the runtime has no previous instance any more", `href="log?container=app`, "crr/web-x-0", `<img src="timeline.svg?kind=crr`, "container app")
	contains(t, s.get(t, "/log?name=web-0000&container=app"), "log of app, previous false")
	contains(t, s.get(t, "/timeline.svg?kind=crr&name=web-x-0"), "<svg", "web-0000")
	contains(t, s.get(t, "/nodes"), "refit-daemon is ready on 1 of 1 node; 1 pull in progress.", "app:2 40% (4.0 of 10.0 MB)")
	contains(t, s.get(t, "/sidecarsets"), "mesh", "There is 1 SidecarSet.", ">Updating</td>")
	contains(t, s.get(t, "/sidecarset?name=mesh"), "sidecarset/mesh", "3 of 7 pods are updated.", ">Pause</a>", ">Undo</a>")
}

// While refit-daemon is updated, a node has two pods of it, and another pod has no node yet.
func TestNodesDuringAnUpdateOfTheDaemon(t *testing.T) {
	t.Parallel()
	var pods []client.Object
	for _, name := range []string{"old", "new", "pending"} {
		one := pod(name)
		one.Namespace, one.Labels = "refit-system", map[string]string{"app.kubernetes.io/name": "refit-daemon"}
		if name == "pending" {
			one.Spec.NodeName, one.Status = "", corev1.PodStatus{}
		}
		pods = append(pods, one)
	}
	contains(t, open(t, nil, pods...).get(t, "/nodes"), "refit-daemon is ready on 1 of 1 node;")
}

// Text of others stays text, in the page and in the changes that the script applies.
func TestHostileTextIsText(t *testing.T) {
	t.Parallel()
	const hostile = `</td><script>alert(1)</script>"onload=x 'y` + "\u2028\n<img src=x onerror=alert(1)>"
	objects := shop(1)
	for _, o := range objects {
		if r, ok := o.(*v1beta1.ContainerRecreateRequest); ok {
			r.Status.Message, r.OwnerReferences = hostile, nil
			r.Annotations[v1beta1.AnnotationRequestedBy] = hostile
			r.Spec.Containers[0].Name = hostile
		}
	}
	s := open(t, nil, objects...)
	for _, path := range []string{"/", "/rollout?kind=restartrollout&name=web-x", "/pod?name=web-0000", "/timeline.svg?kind=crr&name=web-x-0"} {
		got := s.get(t, path)
		if got.code != http.StatusOK || strings.Contains(got.body, "<script>") || strings.Contains(got.body, "<img src=x") || !strings.Contains(got.body, "&lt;script&gt;") {
			t.Errorf("%s: %d %s", path, got.code, got.body)
		}
	}
	contains(t, s.get(t, "/pod?name=%3Cscript%3Ealert(1)"), "&lt;script&gt;alert(1)")
	events := s.stream(t, "/stream/")
	line := <-events
	if strings.ContainsAny(line, "<>\u2028") || strings.Contains(line, "\n") {
		t.Errorf("%s", line)
	}
	var c change
	if err := json.Unmarshal([]byte(line), &c); err != nil {
		t.Fatal(err)
	}
	if cells := c.Sections["requests"].Set[0].Cells; cells[len(cells)-1].Text != hostile {
		t.Errorf("%q", cells)
	}
	var out bytes.Buffer
	if err := Record(t.Context(), Config{API: s.api, Namespace: "shop", Now: time.Now}, &out, "restartrollout/web-x"); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "<script") || strings.Contains(out.String(), "<img src=x") || !strings.Contains(out.String(), "&lt;script&gt;") {
		t.Errorf("%s", out.String())
	}
}

// stream returns the data of the events of a page.
func (s *site) stream(t *testing.T, path string) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.AddCookie(s.cookie)
	response, err := s.server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", path, response.Status)
	}
	events := make(chan string)
	go func() {
		defer close(events)
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, 4<<20)
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				select {
				case events <- data:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return events
}

// A change of one of 1,000 pods is sent as one row.
func TestOnlyChangesAreSent(t *testing.T) {
	t.Parallel()
	s := open(t, nil, shop(1000)...)
	events := s.stream(t, "/stream/rollout?kind=restartrollout&name=web-x")
	var c change
	if err := json.Unmarshal([]byte(<-events), &c); err != nil {
		t.Fatal(err)
	}
	if pods := c.Sections["pods"]; len(pods.Set) != 1000 || len(pods.Order) != 1000 || c.Head == nil {
		t.Fatalf("%d rows, %d in order", len(pods.Set), len(pods.Order))
	}
	s.awaitWatch(t, "*v1.PodList")
	var one corev1.Pod
	if err := s.api.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-0500"}, &one); err != nil {
		t.Fatal(err)
	}
	one.Status.ContainerStatuses[0].RestartCount = 77
	if err := s.api.Status().Update(t.Context(), &one); err != nil {
		t.Fatal(err)
	}
	line := <-events
	c = change{}
	if err := json.Unmarshal([]byte(line), &c); err != nil {
		t.Fatal(err)
	}
	if pods := c.Sections["pods"]; len(pods.Set) != 1 || pods.Ordered || c.Head != nil || pods.Set[0].Cells[4].Text != "77" {
		t.Errorf("%s", line)
	}
	if err := s.api.Delete(t.Context(), &one); err != nil {
		t.Fatal(err)
	}
	c = change{}
	if err := json.Unmarshal([]byte(<-events), &c); err != nil {
		t.Fatal(err)
	}
	if pods := c.Sections["pods"]; len(pods.Set) != 0 || len(pods.Order) != 999 || slices.Contains(pods.Order, "shop/web-0500") {
		t.Errorf("%d rows, %d in order", len(pods.Set), len(pods.Order))
	}
}

// Many changes within a moment are sent together: a browser gets at most a few updates a second.
func TestChangesAreCombined(t *testing.T) {
	t.Parallel()
	s := open(t, nil, shop(20)...)
	events := s.stream(t, "/stream/rollout?kind=restartrollout&name=web-x")
	<-events
	s.awaitWatch(t, "*v1.PodList")
	const changes = 50 // the fake client keeps 100
	began := time.Now()
	for i := 1; i <= changes; i++ {
		var one corev1.Pod
		if err := s.api.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-0003"}, &one); err != nil {
			t.Fatal(err)
		}
		one.Status.ContainerStatuses[0].RestartCount = int32(1000 + i)
		if err := s.api.Status().Update(t.Context(), &one); err != nil {
			t.Fatal(err)
		}
	}
	seen := 0
	for line := range events {
		if seen++; strings.Contains(line, fmt.Sprint(1000+changes)) {
			break
		}
	}
	if most := int(time.Since(began)/combine) + 1; seen > most {
		t.Errorf("%d updates for %d changes, at most %d expected", seen, changes, most)
	}
}

func TestTooManyOpenPagesAreRefused(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	for range maxStreams {
		<-s.stream(t, "/stream/nodes")
	}
	if got := s.get(t, "/stream/nodes"); got.code != http.StatusServiceUnavailable {
		t.Errorf("%d %s", got.code, got.body)
	}
}

// What the user may not read is said, and the rest is shown.
func TestWithoutRights(t *testing.T) {
	t.Parallel()
	s := open(t, func(c *Config) {
		c.API = interceptor.NewClient(c.API, interceptor.Funcs{List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, ok := list.(*v1beta1.SidecarSetList); ok {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "sidecarsets"}, "", fmt.Errorf("not allowed"))
			}
			return api.List(ctx, list, options...)
		}})
	}, shop(1)...)
	contains(t, s.get(t, "/"), "SidecarSets cannot be read: ", "forbidden", "restartrollout/web-x")
}

// The file of a rollout needs nothing else, and has no links.
func TestRecord(t *testing.T) {
	t.Parallel()
	api := cluster(t, shop(3)...)
	var out bytes.Buffer
	if err := Record(t.Context(), Config{API: api, Namespace: "shop", Now: time.Now}, &out, "restartrollout/web-x"); err != nil {
		t.Fatal(err)
	}
	contains(t, answer{body: out.String()}, "restartrollout/web-x", "web-0002", "container app: stopping", "data:image/svg&#43;xml;base64,", "style-src 'sha256-", "Recorded at")
	if err := Record(t.Context(), Config{API: api, Namespace: "shop", Now: time.Now}, &bytes.Buffer{}, "restartrollout.refit.dev/web-x"); err != nil {
		t.Errorf("the name that -o name prints: %v", err)
	}
	for _, no := range []string{"<script", "<a ", "<link", "/assets/", "href="} {
		if strings.Contains(out.String(), no) {
			t.Errorf("%s in the file", no)
		}
	}
	for _, wrong := range []string{"web", "pod/web-0000", "restartrollout.apps/web-x"} {
		if err := Record(t.Context(), Config{API: api, Namespace: "shop", Now: time.Now}, &out, wrong); err == nil {
			t.Errorf("%s is accepted", wrong)
		}
	}
}

// An update in place has a row for each pod that the workload owns, and the actions of the commands.
func TestUpdateOfAWorkload(t *testing.T) {
	t.Parallel()
	policy := &v1alpha1.InPlaceUpdatePolicy{ObjectMeta: object("shop", "gently")}
	policy.Spec.TargetRef = v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web"}
	policy.Status.MatchedPods, policy.Status.UpdatedReadyPods = 2, 1
	policy.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonBudget, Message: "1 pod may be unavailable"}}
	other := pod("web-other")
	other.OwnerReferences = nil
	s := open(t, nil, append(shop(2), policy, other)...)
	const page = "/rollout?kind=inplaceupdatepolicy&name=gently"
	got := s.get(t, page)
	contains(t, got, ">web-0000</a>", ">web-0001</a>", ">Pause</a>", ">Promote</a>", ">Undo</a>", "1/2 of the pods of statefulset/web are done. MaxUnavailable: 1 pod may be unavailable")
	if strings.Contains(got.body, "web-other") || strings.Contains(got.body, "Abort") {
		t.Errorf("%s", got.body)
	}
	const act = "do=pause&kind=inplaceupdatepolicy&namespace=shop&name=gently"
	contains(t, s.send(t, http.MethodPost, "/act", act, nil), "It is done.", "inplaceupdatepolicy/gently paused")
	contains(t, s.get(t, "/"), ">inplaceupdatepolicy/gently</a>")
	contains(t, s.send(t, http.MethodPost, "/act", strings.Replace(act, "pause", "undo", 1), nil), "It failed: ", "revision")
	var out bytes.Buffer
	if err := Record(t.Context(), Config{API: s.api, Namespace: "shop", Now: time.Now}, &out, "inplaceupdatepolicy/gently"); err != nil || !strings.Contains(out.String(), "web-0001") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

package dashboard

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/kit/browser"
)

var screenshots = flag.Bool("screenshots", false, "write the pictures of docs/dashboard.md again")

const restarting = "/rollout?kind=restartrollout&name=web-x"

// setRestarts changes the restart count of a pod.
func (s *site) setRestarts(t *testing.T, name string, count int32) {
	t.Helper()
	var one corev1.Pod
	if err := s.api.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, &one); err != nil {
		t.Fatal(err)
	}
	one.Status.ContainerStatuses[0].RestartCount = count
	if err := s.api.Status().Update(t.Context(), &one); err != nil {
		t.Fatal(err)
	}
}

func (s *site) picture(t *testing.T, p *browser.Page, name string, height int) {
	t.Helper()
	picture := p.Picture(1100, height)
	const most = 150_000
	if len(picture) > most {
		t.Errorf("picture %s has %d bytes", name, len(picture))
	}
	if !*screenshots {
		return
	}
	if err := os.WriteFile(filepath.Join("..", "..", "docs", "images", name), picture, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A user opens the printed address, and looks at a rollout of 1,000 pods: a change of a pod changes its row only, and the focus stays.
func TestInABrowserRowsArePatched(t *testing.T) {
	t.Parallel()
	s, p := open(t, nil, shop(1000)...), browser.Open(t)
	p.Go(s.address)
	p.Await("location.search === '' && document.body && document.body.dataset.live")
	p.Eval("document.querySelector('a[href^=\"rollout\"]').click()")
	p.Await("document.body && document.body.dataset.live && document.querySelectorAll('#pods tr').length === 1000")
	s.awaitWatch(t, "*v1.PodList")
	p.Eval("window.row = document.querySelector('[data-key=\"shop/web-0500\"]'); window.others = 0;" +
		"new MutationObserver((all) => { for (const m of all) if (!row.contains(m.target)) others++; }).observe(document.getElementById('pods'), {subtree: true, childList: true, characterData: true});" +
		"row.querySelector('a').focus()")
	s.setRestarts(t, "web-0500", 77)
	p.Await("row.isConnected && row.children[4].textContent === '77'")
	if others := p.Eval("others"); others != 0.0 {
		t.Errorf("%v changes in other rows", others)
	}
	if focused := p.Eval("document.activeElement.textContent"); focused != "web-0500" {
		t.Errorf("the focus is at %v", focused)
	}
	var one corev1.Pod
	one.Namespace, one.Name = "shop", "web-0003"
	if err := s.api.Delete(t.Context(), &one); err != nil {
		t.Fatal(err)
	}
	p.Await("document.querySelectorAll('#pods tr').length === 999")
	if focused := p.Eval("document.activeElement.textContent"); focused != "web-0500" {
		t.Errorf("the focus is at %v", focused)
	}
}

// A user pauses a rollout with the keyboard. Headings, tables and live regions are there for a screen reader.
func TestInABrowserByKeyboard(t *testing.T) {
	t.Parallel()
	s, p := open(t, nil, shop(3)...), browser.Open(t)
	p.Go(s.address)
	p.Await("document.body && document.body.dataset.live")
	p.Go(s.base + restarting)
	p.Await("document.body && document.body.dataset.live && document.getElementById('pods')")
	p.Press("Tab")
	if first := p.Eval("document.activeElement.className + getComputedStyle(document.activeElement).outlineStyle"); first != "skipsolid" {
		t.Errorf("the first link is %v", first)
	}
	for range 20 {
		if p.Eval("document.activeElement.textContent") == "Pause" {
			break
		}
		p.Press("Tab")
	}
	p.Press("Enter")
	p.Await("document.querySelector('form button')")
	if paused(t, s) {
		t.Error("the rollout is paused before the confirmation")
	}
	p.Eval("document.querySelector('form button').focus()")
	p.Press("Enter")
	p.Await("document.getElementById('summary') && document.getElementById('summary').textContent === 'It is done.'")
	if !paused(t, s) {
		t.Error("the rollout is not paused")
	}
	p.Go(s.base + restarting)
	p.Await("document.body && document.body.dataset.live && document.querySelector('#actions a').textContent === 'Resume'")
	const accessible = "document.querySelectorAll('h1').length === 1 && document.querySelectorAll('h2').length === document.querySelectorAll('section').length" +
		" && [...document.querySelectorAll('table')].every((t) => t.querySelector('thead th[scope=col]') && [...t.tBodies[0].rows].every((r) => r.cells[0].scope === 'row'))" +
		" && document.getElementById('summary').getAttribute('aria-live') === 'polite' && document.documentElement.lang === 'en'"
	if p.Eval(accessible) != true {
		t.Errorf("%v", p.Eval("document.body.innerHTML"))
	}
	p.Dark(false)
	light := p.Eval("getComputedStyle(document.body).backgroundColor")
	p.Dark(true)
	if dark := p.Eval("getComputedStyle(document.body).backgroundColor"); dark == light {
		t.Errorf("light and dark have %v", dark)
	}
}

// Text of others does nothing in a browser, neither in the first page nor in changes, and the policy stops what would be inserted.
func TestInABrowserHostileTextIsText(t *testing.T) {
	t.Parallel()
	const hostile = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`
	s, p := open(t, nil, shop(2)...), browser.Open(t)
	p.Go(s.address)
	p.Await("document.body && document.body.dataset.live")
	p.Go(s.base + restarting)
	p.Await("document.body && document.body.dataset.live && document.getElementById('pods')")
	s.awaitWatch(t, "*v1beta1.ContainerRecreateRequestList")
	s.awaitWatch(t, "*v1beta1.ContainerRecreateRequestList") // of the page of one rollout
	var r v1beta1.ContainerRecreateRequest
	if err := s.api.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-x-0"}, &r); err != nil {
		t.Fatal(err)
	}
	r.Status.Message = hostile
	if err := s.api.Status().Update(t.Context(), &r); err != nil {
		if err := s.api.Update(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
	}
	p.Await(fmt.Sprintf("document.querySelector('#pods tr').textContent.includes(%q)", hostile))
	p.Go(s.base + "/pod?name=web-0000")
	p.Await(fmt.Sprintf("document.body && document.body.dataset.live && document.getElementById('requests').textContent.includes(%q)", hostile))
	if images := p.Eval("document.querySelectorAll('img[src=x], td script, main script').length"); images != 0.0 {
		t.Errorf("%v elements from text", images)
	}
	p.Eval("{ const s = document.createElement('script'); s.textContent = 'window.hacked = 2'; document.body.append(s); document.body.insertAdjacentHTML('beforeend', '<a id=bad onclick=\"window.hacked = 3\">x</a>'); document.getElementById('bad').click(); }")
	if hacked := p.Eval("window.hacked"); hacked != nil {
		t.Errorf("a script has run: %v", hacked)
	}
}

// A browser has six connections to a server: a page that is not visible keeps none, and comes back with what has changed meanwhile.
func TestInABrowserHiddenPagesHaveNoConnection(t *testing.T) {
	t.Parallel()
	s, p := open(t, nil, shop(2)...), browser.Open(t)
	p.Go(s.address)
	p.Await("location.search === '' && document.body && document.body.dataset.live")
	p.Go(s.base + restarting)
	p.Await("document.body && document.body.dataset.live && document.getElementById('pods')")
	s.awaitWatch(t, "*v1.PodList")
	const hide = "window.close0 = EventSource.prototype.close; EventSource.prototype.close = function () { window.ended = true; close0.call(this); };" +
		"Object.defineProperty(document, 'hidden', {value: true, configurable: true}); document.dispatchEvent(new Event('visibilitychange')); window.ended"
	if p.Eval(hide) != true {
		t.Error("the page that is not visible is connected")
	}
	s.setRestarts(t, "web-0001", 77)
	p.Eval("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
	p.Await("document.querySelector('[data-key=\"shop/web-0001\"]').children[4].textContent === '77'")
}

// restarted has a container that was restarted 36 s before noon.
func restarted(status *corev1.PodStatus) {
	before := func(seconds int) metav1.Time { return metav1.NewTime(noon.Add(-time.Duration(seconds) * time.Second)) }
	c := &status.ContainerStatuses[0]
	c.RestartCount, c.State.Running.StartedAt = 1, before(36)
	c.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ContainerID: "containerd://1", ExitCode: 143, Reason: "Error", FinishedAt: before(37)}
	status.Conditions = append(status.Conditions, corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: before(33)})
}

// What the documents show.
func TestInABrowserScreenshots(t *testing.T) {
	t.Parallel()
	objects := shop(9)
	for i, o := range objects {
		if r, ok := o.(*v1alpha1.RestartRollout); ok {
			r.Status.RestartedPods, r.Status.RestartingPods = 3, 1
			r.Status.Conditions[0].Message = "1 of 9 pods is restarting, 5 are waiting"
		}
		if r, ok := o.(*v1beta1.ContainerRecreateRequest); ok {
			r.Spec.PodName = "web-0003"
		}
		if one, ok := o.(*corev1.Pod); ok {
			one.Spec.NodeName = fmt.Sprintf("node-%d", i%3+1)
			one.Status.ContainerStatuses[0].RestartCount = 0
			if one.Name == "web-0000" {
				restarted(&one.Status)
			}
		}
	}
	for i := range 3 {
		name := fmt.Sprintf("web-000%d", i)
		r := request("web-x-"+name, name, "")
		r.CreationTimestamp = metav1.NewTime(noon.Add(time.Duration(i-4) * 10 * time.Second))
		r.Status.Phase, r.Status.CompletionTime = v1beta1.ContainerRecreateRequestCompleted, new(metav1.NewTime(r.CreationTimestamp.Add(8*time.Second)))
		r.Status.ContainerRecreateStates = []v1beta1.ContainerRecreateRequestRecreateState{{Name: "app", Phase: v1beta1.ContainerRecreateRequestSucceeded, ContainerID: "containerd://1"}}
		objects = append(objects, r)
	}
	pull := &v1beta1.ImagePullJob{ObjectMeta: object("shop", "warm")}
	pull.Spec.Image, pull.Status = "registry.example/app:2", v1beta1.ImagePullJobStatus{Desired: 3, Succeeded: 1, StartTime: new(metav1.NewTime(noon))}
	single := request("debug", "web-0008", "")
	single.OwnerReferences, single.Labels, single.Status = nil, nil, v1beta1.ContainerRecreateRequestStatus{}
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "mesh", CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))}}
	set.Status = v1beta1.SidecarSetStatus{MatchedPods: 7, UpdatedPods: 3}
	s, p := open(t, nil, append(objects, pull, single, set)...), browser.Open(t)
	p.Dark(false)
	p.Go(s.address)
	p.Await("document.body && document.body.dataset.live")
	s.picture(t, p, "dashboard-now.png", 620)
	p.Go(s.base + restarting)
	p.Await("document.body && document.body.dataset.live && document.getElementById('pods')")
	s.picture(t, p, "dashboard-rollout.png", 760)
	p.Dark(true)
	p.Go(s.base + "/pod?name=web-0000")
	p.Await("document.body && document.body.dataset.live && document.getElementById('moments') && [...document.images].every((i) => i.complete && i.naturalWidth > 100)")
	s.picture(t, p, "dashboard-pod.png", 860)
	if got := s.get(t, "/"); got.code != http.StatusOK {
		t.Errorf("%d", got.code)
	}
}

package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

// canaryPatience is how long an operation of a canary may take, on a machine that is busy with attacks and perhaps with other things.
const canaryPatience = 3 * time.Minute

// errWrong is wrapped by the error of an operation that has ended, with a result that is not right.
var errWrong = errors.New("wrong result")

// canary is one kind of operation that a tenant does again and again while another one attacks.
type canary struct {
	name string
	// once does the operation for the n-th time in a lane, and compares its result.
	once func(ctx context.Context, lane, n int) error
	// lanes is how many do it at the same time, each with a pod of its own.
	lanes int
	// besideOthers is the 99th percentile beside objects that Refit does not look at; 0 before it is measured.
	besideOthers time.Duration

	mu    sync.Mutex
	took  []time.Duration
	wrong []error
}

// run repeats the operation in all lanes until the context ends.
func (c *canary) run(ctx context.Context) {
	var lanes sync.WaitGroup
	for lane := range c.lanes {
		lanes.Go(func() { c.runLane(ctx, lane) })
	}
	lanes.Wait()
}

// runLane repeats the operation in one lane. What the end of the context interrupts does not count.
func (c *canary) runLane(ctx context.Context, lane int) {
	for n := 1; ctx.Err() == nil; n++ {
		began := time.Now()
		limited, cancel := context.WithTimeout(ctx, canaryPatience)
		err := c.once(limited, lane, n)
		cancel()
		if ctx.Err() != nil {
			return
		}
		c.mu.Lock()
		c.took = append(c.took, time.Since(began))
		if err != nil {
			c.wrong = append(c.wrong, fmt.Errorf("%s of %s, after %s: %w", c.name, began.Format("15:04:05"), time.Since(began).Round(time.Millisecond), err))
		}
		c.mu.Unlock()
	}
}

// count is how often the operation has been done.
func (c *canary) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.took)
}

// forget begins to count anew, and returns the 99th percentile of what was counted.
func (c *canary) forget() (p99 time.Duration, wrong []error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p99, wrong = c.p99(), c.wrong
	c.took, c.wrong = nil, nil
	return p99, wrong
}

// p99 is the 99th percentile of what was counted, 0 of nothing. The caller holds the lock.
func (c *canary) p99() time.Duration {
	if len(c.took) == 0 {
		return 0
	}
	slices.Sort(c.took)
	return c.took[len(c.took)*99/100]
}

// figures is one line with what was counted so far, which says what is compared if the test is ended before its end.
func (c *canary) figures() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	line := fmt.Sprintf("%s: %d operations, p99 %s", c.name, len(c.took), c.p99().Round(time.Millisecond))
	if c.besideOthers > 0 {
		line += fmt.Sprintf(", beside other objects %s", c.besideOthers.Round(time.Millisecond))
	}
	if n := len(c.wrong); n > 0 {
		line += fmt.Sprintf(", %d wrong, the last: %.500v", n, c.wrong[n-1])
	}
	return line
}

// canaries are the operations of the tenant whose namespace the fixture has. Each has a pod of its own, and one that lasts for seconds has as
// many pods as there are to be lanes.
func (s *sidecarFixture) canaries(lanes int) []*canary {
	s.t.Helper()
	for lane := range lanes {
		s.start(s.podOf(fmt.Sprintf("request-%d", lane), shell("app", obedient), shell("other", obedient)))
		s.start(s.podOf(fmt.Sprintf("update-%d", lane), shell("app", obedient), shell("other", obedient)))
	}
	s.start(s.server("probe"))
	s.mark("probe", "probe", probing("up", "app", command("/testapp", "state", "/shared/state")))
	hot := s.start(s.examplePod("pod.yaml")).Name
	s.accepted(hot, "v1")
	repository, tag, _ := s.testappImage()
	source := s.source("")
	return []*canary{
		{name: "request", lanes: lanes, once: s.restartsOnce}, {name: "in-place update", lanes: lanes, once: s.updatesOnce},
		{name: "probe", lanes: 1, once: s.probesOnce}, {name: "injection", lanes: 1, once: s.injectsOnce},
		{name: "image pull", lanes: lanes, once: func(ctx context.Context, lane, n int) error { return s.pullsOnce(ctx, lane, n, repository+":"+tag) }},
		{name: "hot update", lanes: 1, once: func(ctx context.Context, _, n int) error { return s.hotUpdatesOnce(ctx, n, hot, source) }},
	}
}

// restartsOnce has one container restarted, and not the other.
func (s *sidecarFixture) restartsOnce(ctx context.Context, lane, n int) error {
	name := fmt.Sprintf("request-%d", lane)
	before := &corev1.Pod{}
	if err := s.Get(ctx, s.key(name), before); err != nil {
		return err
	}
	r := s.newRequest(fmt.Sprintf("r-%d-%d", lane, n), name+"/app")
	if err := s.Create(ctx, r); err != nil {
		return fmt.Errorf("create request: %w", err)
	}
	err := until(ctx, canaryPatience, func(ctx context.Context) (bool, error) {
		return r.Status.CompletionTime != nil, s.Get(ctx, client.ObjectKeyFromObject(r), r)
	})
	if err != nil {
		return fmt.Errorf("request %s, phase %q: %w", r.Name, r.Status.Phase, err)
	}
	after := &corev1.Pod{}
	if err := s.Get(ctx, s.key(name), after); err != nil {
		return err
	}
	if got := status(after, "app").RestartCount - status(before, "app").RestartCount; got != 1 || status(after, "other").RestartCount != 0 {
		return fmt.Errorf("%w: app restarted %d times, other %d; %s", errWrong, got, status(after, "other").RestartCount, r.Status.Message)
	}
	return s.Delete(ctx, r)
}

// restartsOfAPod is how often kubelet starts a container of a pod again before the pod is replaced: kubelet delays what comes back within 10
// minutes, as an image does that has been there before.
const restartsOfAPod = 3

// updatesOnce changes the image of one container, which kubelet then replaces.
func (s *sidecarFixture) updatesOnce(ctx context.Context, lane, _ int) error {
	name := fmt.Sprintf("update-%d", lane)
	before := &corev1.Pod{}
	if err := s.Get(ctx, s.key(name), before); err != nil {
		return err
	}
	if status(before, "app").RestartCount >= restartsOfAPod {
		fresh, err := s.replaced(ctx, before)
		if err != nil {
			return fmt.Errorf("replace pod: %w", err)
		}
		before = fresh
	}
	want := image
	if containerOf(before, "app").Image == image { // also after an update that took too long
		want = newImage
	}
	out, code, err := s.runTool(ctx, "set", "image", "pod/"+name, "app="+want)
	if err != nil {
		return fmt.Errorf("kubectl-refit set image: %w: %s", err, out)
	}
	if code != 0 {
		return fmt.Errorf("%w: kubectl-refit set image: exit code %d: %s", errWrong, code, out)
	}
	after := &corev1.Pod{}
	if err := s.Get(ctx, s.key(name), after); err != nil {
		return err
	}
	if after.UID != before.UID || containerOf(after, "app").Image != want || status(after, "other").RestartCount != 0 {
		return fmt.Errorf("%w: image %s, want %s; other restarted %d times", errWrong, containerOf(after, "app").Image, want, status(after, "other").RestartCount)
	}
	return nil
}

// replaced creates a pod again, and returns it when it is ready.
//
// The new pod may be gone at once: a patch of the status of the former one, as kubelet's, that the API server reads between the two
// steps of a forced deletion deletes whatever has the name after that. Then it is created again.
func (s *sidecarFixture) replaced(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	if err := s.Delete(ctx, pod, client.GracePeriodSeconds(0)); err != nil {
		return nil, err
	}
	fresh := &corev1.Pod{}
	return fresh, until(ctx, canaryPatience, func(ctx context.Context) (bool, error) {
		err := s.Get(ctx, client.ObjectKeyFromObject(pod), fresh)
		if apierrors.IsNotFound(err) {
			err = s.Create(ctx, s.podOf(pod.Name, shell("app", obedient), shell("other", obedient)))
			return false, client.IgnoreAlreadyExists(err)
		}
		return fresh.UID != pod.UID && condition(fresh, corev1.PodReady) == corev1.ConditionTrue, err
	})
}

// probesOnce changes what the application says of itself, and waits until the pod shows it.
func (s *sidecarFixture) probesOnce(ctx context.Context, _, n int) error {
	word, want := "up", corev1.ConditionTrue
	if n%2 == 1 {
		word, want = "down", corev1.ConditionFalse
	}
	out, err := s.inContainer(ctx, "probe", "sh", "echo "+word+" > /shared/state")
	if err != nil {
		return fmt.Errorf("write state: %w: %s", err, out)
	}
	return until(ctx, canaryPatience, func(ctx context.Context) (bool, error) {
		pod := &corev1.Pod{}
		err := s.Get(ctx, s.key("probe"), pod)
		return condition(pod, corev1.PodConditionType(conditionOf("up"))) == want, err
	})
}

// injectsOnce creates a pod that a SidecarSet selects, and looks at what is injected.
func (s *sidecarFixture) injectsOnce(ctx context.Context, _, _ int) error {
	pod := selected("hostile", s.podOf("injected", shell("app", obedient)))
	if err := s.Create(ctx, pod, client.DryRunAll); err != nil {
		return fmt.Errorf("create pod: %w", err)
	}
	if got := containerOf(pod, "log").Image; got != image {
		return fmt.Errorf("%w: the injected container has the image %q", errWrong, got)
	}
	return nil
}

// pullsOnce pulls an image on every node.
func (s *sidecarFixture) pullsOnce(ctx context.Context, lane, n int, image string) error {
	job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fmt.Sprintf("pull-%d-%d", lane, n)}}
	job.Spec.Image, job.Spec.CompletionPolicy.Type = image, v1beta1.CompletionAlways
	job.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{Names: s.nodes}
	if err := s.Create(ctx, job); err != nil {
		return fmt.Errorf("create ImagePullJob: %w", err)
	}
	err := until(ctx, canaryPatience, func(ctx context.Context) (bool, error) {
		return job.Status.CompletionTime != nil, s.Get(ctx, client.ObjectKeyFromObject(job), job)
	})
	if err != nil {
		return fmt.Errorf("ImagePullJob %s, status %+v: %w", job.Name, job.Status, err)
	}
	if job.Status.Succeeded != int32(len(s.nodes)) || job.Status.Failed != 0 {
		return fmt.Errorf("%w: %+v", errWrong, job.Status)
	}
	return s.Delete(ctx, job)
}

// hotUpdatesOnce changes a file of a running server, which then serves it.
func (s *sidecarFixture) hotUpdatesOnce(ctx context.Context, n int, pod, source string) error {
	version := []string{"v1", "v2"}[n%2]
	body, err := json.Marshal(map[string]any{"version": version, "url": source + version + "/default.conf"})
	if err != nil {
		return err
	}
	got, err := s.send(ctx, call{
		pod: pod, port: 5000, method: http.MethodPost, path: "/hot-update", token: sidecarToken, mediaType: "application/json", body: bytes.NewReader(body),
	})
	if err != nil {
		return fmt.Errorf("update to %s: %w", version, err)
	}
	if got.code != http.StatusOK {
		return fmt.Errorf("%w: update to %s: HTTP status %d: %s", errWrong, version, got.code, got.body)
	}
	return until(ctx, canaryPatience, func(ctx context.Context) (bool, error) {
		answer, err := s.send(ctx, get(pod))
		return err == nil && answer.body == "this is "+version, nil
	})
}

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

// canaryPatience is how long an operation of a canary may take, on a machine that is busy with attacks.
const canaryPatience = 60 * time.Second

// errWrong is wrapped by the error of an operation that has ended, with a result that is not right.
var errWrong = errors.New("wrong result")

// canary is one kind of operation that a tenant does again and again while another one attacks.
type canary struct {
	name string
	// once does the operation for the n-th time, and compares its result.
	once func(ctx context.Context, n int) error

	mu    sync.Mutex
	took  []time.Duration
	wrong []error
}

// run repeats the operation until the context ends. What was interrupted by that does not count.
func (c *canary) run(ctx context.Context) {
	for n := 1; ctx.Err() == nil; n++ {
		began := time.Now()
		limited, cancel := context.WithTimeout(ctx, canaryPatience)
		err := c.once(limited, n)
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
func (c *canary) forget() (operations int, p99 time.Duration, wrong []error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.Sort(c.took)
	operations, wrong = len(c.took), c.wrong
	if operations > 0 {
		p99 = c.took[operations*99/100]
	}
	c.took, c.wrong = nil, nil
	return operations, p99, wrong
}

// canaries are the operations of the tenant whose namespace the fixture has. Each has a pod of its own.
func (s *sidecarFixture) canaries() []*canary {
	s.t.Helper()
	s.start(s.podOf("request", shell("app", obedient), shell("other", obedient)))
	s.start(s.podOf("update", shell("app", obedient), shell("other", obedient)))
	s.start(s.server("probe"))
	s.mark("probe", "probe", probing("up", "app", command("/testapp", "state", "/shared/state")))
	hot := s.start(s.examplePod("pod.yaml")).Name
	s.accepted(hot, "v1")
	repository, tag, _ := s.testappImage()
	source := s.source("")
	return []*canary{
		{name: "request", once: s.restartsOnce}, {name: "in-place update", once: s.updatesOnce}, {name: "probe", once: s.probesOnce},
		{name: "injection", once: s.injectsOnce},
		{name: "image pull", once: func(ctx context.Context, n int) error { return s.pullsOnce(ctx, n, repository+":"+tag) }},
		{name: "hot update", once: func(ctx context.Context, n int) error { return s.hotUpdatesOnce(ctx, n, hot, source) }},
	}
}

// restartsOnce has one container restarted, and not the other.
func (s *sidecarFixture) restartsOnce(ctx context.Context, n int) error {
	before := &corev1.Pod{}
	if err := s.Get(ctx, s.key("request"), before); err != nil {
		return err
	}
	r := s.newRequest(fmt.Sprintf("r-%d", n), "request/app")
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
	if err := s.Get(ctx, s.key("request"), after); err != nil {
		return err
	}
	if got := status(after, "app").RestartCount - status(before, "app").RestartCount; got != 1 || status(after, "other").RestartCount != 0 {
		return fmt.Errorf("%w: app restarted %d times, other %d; %s", errWrong, got, status(after, "other").RestartCount, r.Status.Message)
	}
	return s.Delete(ctx, r)
}

// updatesOnce changes the image of one container, which kubelet then replaces.
func (s *sidecarFixture) updatesOnce(ctx context.Context, _ int) error {
	before := &corev1.Pod{}
	if err := s.Get(ctx, s.key("update"), before); err != nil {
		return err
	}
	want := image
	if containerOf(before, "app").Image == image { // also after an update that took too long
		want = newImage
	}
	out, code, err := s.runTool(ctx, "set", "image", "pod/update", "app="+want)
	if err != nil {
		return fmt.Errorf("kubectl-refit set image: %w: %s", err, out)
	}
	if code != 0 {
		return fmt.Errorf("%w: kubectl-refit set image: exit code %d: %s", errWrong, code, out)
	}
	after := &corev1.Pod{}
	if err := s.Get(ctx, s.key("update"), after); err != nil {
		return err
	}
	if after.UID != before.UID || containerOf(after, "app").Image != want || status(after, "other").RestartCount != 0 {
		return fmt.Errorf("%w: image %s, want %s; other restarted %d times", errWrong, containerOf(after, "app").Image, want, status(after, "other").RestartCount)
	}
	return nil
}

// probesOnce changes what the application says of itself, and waits until the pod shows it.
func (s *sidecarFixture) probesOnce(ctx context.Context, n int) error {
	word, want := "up", corev1.ConditionTrue
	if n%2 == 1 {
		word, want = "down", corev1.ConditionFalse
	}
	out, err := s.kubectl(ctx, "", "--namespace", s.namespace, "exec", "probe", "--container", "sh", "--", "sh", "-c", "echo "+word+" > /shared/state")
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
func (s *sidecarFixture) injectsOnce(ctx context.Context, _ int) error {
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
func (s *sidecarFixture) pullsOnce(ctx context.Context, n int, image string) error {
	job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fmt.Sprintf("pull-%d", n)}}
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

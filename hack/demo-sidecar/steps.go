package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/hack/demokit"
	"github.com/refit-project/refit/hack/timeout"
	"github.com/refit-project/refit/internal/kubelet"
)

// call sends the request, with the token, and returns status and body.
func (d *demo) call(ctx context.Context, c *http.Client, method, path string, form url.Values) (code int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+podName+path, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Authorization", "Bearer "+d.token)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := c.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	return response.StatusCode, strings.TrimSpace(string(b)), err
}

func (d *demo) post(ctx context.Context, version, file string) (code int, body string, err error) {
	return d.call(ctx, d.api.Client(timeout.Scaled(callTimeout)), http.MethodPost, "/hot-update", url.Values{"version": {version}, "url": {d.source(file)}})
}

// page is the first line of what nginx serves.
func (d *demo) page(ctx context.Context) (string, error) {
	_, body, err := d.call(ctx, d.web.Client(timeout.Scaled(callTimeout)), http.MethodGet, "/", nil)
	if _, title, ok := strings.Cut(body, "<title>"); ok {
		body, _, _ = strings.Cut(title, "</title>")
	}
	body, _, _ = strings.Cut(body, "\n")
	return body, err
}

// accepted is what nginx serves from the first update on.
const accepted = "this is v1"

// serves waits until nginx serves what was accepted.
func (d *demo) serves(ctx context.Context) error {
	last := ""
	err := demokit.Until(ctx, func(ctx context.Context) (bool, error) {
		page, err := d.page(ctx)
		last = page
		return err == nil && page == accepted, nil // it may be starting
	})
	if err != nil {
		return fmt.Errorf("wait for nginx to serve %q, it serves %q: %w", accepted, last, err)
	}
	return nil
}

// sees waits until the pod, as the API has it, is as wanted.
func (d *demo) sees(ctx context.Context, what string, done func(*corev1.Pod) bool) error {
	err := demokit.Until(ctx, func(ctx context.Context) (bool, error) {
		pod, err := d.pod(ctx)
		return err == nil && done(pod), err
	})
	if err != nil {
		return fmt.Errorf("wait for %s: %w", what, err)
	}
	return nil
}

const resultKey = "refit.dev/hot-update-result"

func (d *demo) update(ctx context.Context, t *transcript) error {
	page, err := d.page(ctx)
	if err != nil {
		return err
	}
	before, err := d.pod(ctx)
	if err != nil {
		return err
	}
	if _, _, err := d.call(ctx, d.api.Client(timeout.Scaled(callTimeout)), http.MethodGet, "/status", nil); err != nil { // kubectl is connected from here on
		return err
	}
	t.begin()
	t.print("nginx serves %q; POST /hot-update version=v1 url=%s", page, d.source("v1/default.conf"))
	code, body, err := d.post(ctx, "v1", "v1/default.conf")
	if err != nil {
		return err
	}
	t.print("answer %d: %s", code, body)
	if code != http.StatusOK {
		return errors.New("the update was not accepted")
	}
	if err := d.serves(ctx); err != nil {
		return err
	}
	t.print("nginx serves %q", accepted)
	if err := d.sees(ctx, "the annotation", func(pod *corev1.Pod) bool { return pod.Annotations[resultKey] == "v1: Update success" }); err != nil {
		return err
	}
	t.print("annotation %s of the pod: v1: Update success", resultKey)
	after, err := d.pod(ctx)
	if err != nil {
		return err
	}
	for i, status := range after.Status.ContainerStatuses {
		if status.RestartCount != before.Status.ContainerStatuses[i].RestartCount {
			return fmt.Errorf("container %s was restarted", status.Name)
		}
	}
	t.print("no container was restarted")
	return nil
}

func (d *demo) badUpdate(ctx context.Context, t *transcript) error {
	t.print("POST /hot-update version=v2 url=%s", d.source("bad/default.conf"))
	code, body, err := d.post(ctx, "v2", "bad/default.conf")
	if err != nil {
		return err
	}
	t.print("answer %d: %s", code, body)
	if code == http.StatusOK {
		return errors.New("the bad update was accepted")
	}
	page, err := d.page(ctx)
	if err != nil {
		return err
	}
	t.print("nginx serves %q", page)
	if page != accepted {
		return errors.New("that is not what was accepted last")
	}
	return d.serves(ctx)
}

func (d *demo) probe(ctx context.Context, t *transcript) error {
	for _, flip := range []struct{ state, idle, opsState string }{{"idle", "true", "WaitToBeDeleted"}, {"allocated", "false", "Allocated"}} {
		if err := d.kubectl(ctx, "", "exec", podName, "--container=nginx", "--", "sh", "-c", "echo "+flip.state+" >/tmp/state"); err != nil {
			return err
		}
		t.begin()
		t.print("the program answers %q at /state, which is probed every second", flip.state)
		err := d.sees(ctx, "the label", func(pod *corev1.Pod) bool { return pod.Labels["gameserver-idle"] == flip.idle })
		if err != nil {
			return err
		}
		t.print("pod web-0: label gameserver-idle=%s", flip.idle)
		if err := demokit.Until(ctx, func(ctx context.Context) (bool, error) {
			state, err := d.opsState(ctx)
			return state == flip.opsState, err
		}); err != nil {
			return fmt.Errorf("wait for the GameServer to be %s: %w", flip.opsState, err)
		}
		t.print("GameServer web-0: /spec/opsState=%s", flip.opsState)
	}
	return nil
}

func (d *demo) opsState(ctx context.Context) (string, error) {
	server := &unstructured.Unstructured{}
	server.SetAPIVersion("game.kruise.io/v1alpha1")
	server.SetKind("GameServer")
	if err := d.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: podName}, server); err != nil {
		return "", err
	}
	state, _, err := unstructured.NestedString(server.Object, "spec", "opsState")
	return state, err
}

func (d *demo) loseContainers(ctx context.Context, t *transcript) error {
	for _, container := range []string{"nginx", "refit-sidecar"} {
		was, err := d.container(ctx, container)
		if err != nil {
			return err
		}
		t.begin()
		t.print("KILL to every process %s", container)
		// kubectl exec ends with an error when its own container is the one that is killed.
		line := "for p in /proc/[0-9]*; do grep -qx " + container + " $p/comm && kill -KILL ${p#/proc/}; done"
		_ = d.kubectl(ctx, "", "exec", podName, "--container=nginx", "--", "sh", "-c", line)
		var is corev1.ContainerStatus
		if err := demokit.Until(ctx, func(ctx context.Context) (bool, error) {
			is, err = d.container(ctx, container)
			return is.ContainerID != was.ContainerID && is.Ready, err
		}); err != nil {
			return fmt.Errorf("wait for container %s: %w", container, err)
		}
		t.print("container %s runs again, restartCount %d", container, is.RestartCount)
		if err := d.serves(ctx); err != nil {
			return err
		}
		t.print("nginx serves %q", accepted)
	}
	return nil
}

func (d *demo) container(ctx context.Context, name string) (corev1.ContainerStatus, error) {
	pod, err := d.pod(ctx)
	if err != nil {
		return corev1.ContainerStatus{}, err
	}
	if status := kubelet.StatusOf(pod, name); status != nil {
		return *status, nil
	}
	return corev1.ContainerStatus{}, nil
}

func (d *demo) losePod(ctx context.Context, t *transcript) error {
	pod, err := d.pod(ctx)
	if err != nil {
		return err
	}
	t.print("delete pod web-0, UID %s", pod.UID)
	if err := d.client.Delete(ctx, pod, client.GracePeriodSeconds(1)); err != nil {
		return err
	}
	again := d.named(podName)
	if err := d.client.WaitUntilReady(ctx, again, string(pod.UID)); err != nil {
		return err
	}
	t.print("pod web-0 is ready, UID %s", again.UID)
	if err := d.serves(ctx); err != nil {
		return err
	}
	t.print("nginx serves %q, the revision that its workload had accepted", accepted)
	return nil
}

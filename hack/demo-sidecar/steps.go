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
)

// call sends the request, with the token, and returns status and body.
func (s *scene) call(ctx context.Context, c *http.Client, method, path string, form url.Values) (code int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+podName+path, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := c.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	return response.StatusCode, strings.TrimSpace(string(b)), err
}

func (s *scene) post(ctx context.Context, version, file string) (code int, body string, err error) {
	return s.call(ctx, s.api.Client(callTimeout), http.MethodPost, "/hot-update", url.Values{"version": {version}, "url": {s.source(file)}})
}

// page is the first line of what nginx serves.
func (s *scene) page(ctx context.Context) (string, error) {
	_, body, err := s.call(ctx, s.web.Client(callTimeout), http.MethodGet, "/", nil)
	if _, title, ok := strings.Cut(body, "<title>"); ok {
		body, _, _ = strings.Cut(title, "</title>")
	}
	body, _, _ = strings.Cut(body, "\n")
	return body, err
}

// accepted is what nginx serves from the first update on.
const accepted = "this is v1"

// serves waits until nginx serves what was accepted.
func (s *scene) serves(ctx context.Context) error {
	last := ""
	err := s.until(ctx, actTimeout, func(ctx context.Context) (bool, error) {
		page, err := s.page(ctx)
		last = page
		return err == nil && page == accepted, nil // it may be starting
	})
	if err != nil {
		return fmt.Errorf("wait for nginx to serve %q, it serves %q: %w", accepted, last, err)
	}
	return nil
}

// sees waits until the pod, as the API has it, is as wanted.
func (s *scene) sees(ctx context.Context, what string, done func(*corev1.Pod) bool) error {
	err := s.until(ctx, actTimeout, func(ctx context.Context) (bool, error) {
		pod, err := s.pod(ctx, podName)
		return err == nil && done(pod), err
	})
	if err != nil {
		return fmt.Errorf("wait for %s: %w", what, err)
	}
	return nil
}

const resultKey = "refit.dev/hot-update-result"

func (s *scene) update(ctx context.Context, told *story) error {
	page, err := s.page(ctx)
	if err != nil {
		return err
	}
	before, err := s.pod(ctx, podName)
	if err != nil {
		return err
	}
	if _, _, err := s.call(ctx, s.api.Client(callTimeout), http.MethodGet, "/status", nil); err != nil { // kubectl is connected from here on
		return err
	}
	told.begin()
	told.tell("nginx serves %q; POST /hot-update version=v1 url=%s", page, s.source("v1/default.conf"))
	code, body, err := s.post(ctx, "v1", "v1/default.conf")
	if err != nil {
		return err
	}
	told.tell("answer %d: %s", code, body)
	if code != http.StatusOK {
		return errors.New("the update was not accepted")
	}
	if err := s.serves(ctx); err != nil {
		return err
	}
	told.tell("nginx serves %q", accepted)
	if err := s.sees(ctx, "the annotation", func(pod *corev1.Pod) bool { return pod.Annotations[resultKey] == "v1: Update success" }); err != nil {
		return err
	}
	told.tell("annotation %s of the pod: v1: Update success", resultKey)
	after, err := s.pod(ctx, podName)
	if err != nil {
		return err
	}
	for i, status := range after.Status.ContainerStatuses {
		if status.RestartCount != before.Status.ContainerStatuses[i].RestartCount {
			return fmt.Errorf("container %s was restarted", status.Name)
		}
	}
	told.tell("no container was restarted")
	return nil
}

func (s *scene) badUpdate(ctx context.Context, told *story) error {
	told.tell("POST /hot-update version=v2 url=%s", s.source("bad/default.conf"))
	code, body, err := s.post(ctx, "v2", "bad/default.conf")
	if err != nil {
		return err
	}
	told.tell("answer %d: %s", code, body)
	if code == http.StatusOK {
		return errors.New("the bad update was accepted")
	}
	page, err := s.page(ctx)
	if err != nil {
		return err
	}
	told.tell("nginx serves %q", page)
	if page != accepted {
		return errors.New("that is not what was accepted last")
	}
	return s.serves(ctx)
}

func (s *scene) probe(ctx context.Context, told *story) error {
	for _, flip := range []struct{ state, idle, opsState string }{{"idle", "true", "WaitToBeDeleted"}, {"allocated", "false", "Allocated"}} {
		if err := s.kubectl(ctx, "", "exec", podName, "--container=nginx", "--", "sh", "-c", "echo "+flip.state+" >/tmp/state"); err != nil {
			return err
		}
		told.begin()
		told.tell("the program answers %q at /state, which is asked every second", flip.state)
		err := s.sees(ctx, "the label", func(pod *corev1.Pod) bool { return pod.Labels["gameserver-idle"] == flip.idle })
		if err != nil {
			return err
		}
		told.tell("pod web-0: label gameserver-idle=%s", flip.idle)
		if err := s.until(ctx, actTimeout, func(ctx context.Context) (bool, error) {
			state, err := s.opsState(ctx)
			return state == flip.opsState, err
		}); err != nil {
			return fmt.Errorf("wait for the GameServer to be %s: %w", flip.opsState, err)
		}
		told.tell("GameServer web-0: /spec/opsState=%s", flip.opsState)
	}
	return nil
}

func (s *scene) opsState(ctx context.Context) (string, error) {
	server := &unstructured.Unstructured{}
	server.SetAPIVersion("game.kruise.io/v1alpha1")
	server.SetKind("GameServer")
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: podName}, server); err != nil {
		return "", err
	}
	state, _, err := unstructured.NestedString(server.Object, "spec", "opsState")
	return state, err
}

func (s *scene) loseContainers(ctx context.Context, told *story) error {
	for _, container := range []string{"nginx", "refit-sidecar"} {
		was, err := s.container(ctx, container)
		if err != nil {
			return err
		}
		told.begin()
		told.tell("KILL to every process %s", container)
		// kubectl's own command may end with its container.
		line := "for p in /proc/[0-9]*; do grep -qx " + container + " $p/comm && kill -KILL ${p#/proc/}; done"
		_ = s.kubectl(ctx, "", "exec", podName, "--container=nginx", "--", "sh", "-c", line)
		var is corev1.ContainerStatus
		if err := s.until(ctx, actTimeout, func(ctx context.Context) (bool, error) {
			is, err = s.container(ctx, container)
			return is.ContainerID != was.ContainerID && is.Ready, err
		}); err != nil {
			return fmt.Errorf("wait for container %s: %w", container, err)
		}
		told.tell("container %s runs again, restartCount %d", container, is.RestartCount)
		if err := s.serves(ctx); err != nil {
			return err
		}
		told.tell("nginx serves %q", accepted)
	}
	return nil
}

func (s *scene) container(ctx context.Context, name string) (corev1.ContainerStatus, error) {
	pod, err := s.pod(ctx, podName)
	if err != nil {
		return corev1.ContainerStatus{}, err
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == name {
			return status, nil
		}
	}
	return corev1.ContainerStatus{}, nil
}

func (s *scene) losePod(ctx context.Context, told *story) error {
	pod, err := s.pod(ctx, podName)
	if err != nil {
		return err
	}
	told.tell("delete pod web-0, UID %s", pod.UID)
	if err := s.client.Delete(ctx, pod, client.GracePeriodSeconds(1)); err != nil {
		return err
	}
	again, err := s.ready(ctx, podName, string(pod.UID))
	if err != nil {
		return err
	}
	told.tell("pod web-0 is ready, UID %s", again.UID)
	if err := s.serves(ctx); err != nil {
		return err
	}
	told.tell("nginx serves %q, which its workload had accepted", accepted)
	return nil
}

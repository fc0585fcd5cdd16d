package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/hack/portforward"
)

func (s *sidecarFixture) port(ctx context.Context, pod string, number int) *portforward.Port {
	namespace, name := s.at(ctx, pod)
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprint(namespace, name, number)
	if s.ports[key] == nil {
		s.ports[key] = &portforward.Port{Kubectl: s.program, Namespace: namespace, Pod: name, Number: number}
	}
	return s.ports[key]
}

// answer of a program in a pod.
type answer struct {
	code int
	body string
}

// call is a request to a port of a pod, without a token if that is empty.
type call struct {
	pod                            string
	port                           int
	method, path, token, mediaType string
	body                           io.Reader
}

// get is a call for what the program of a pod serves.
func get(pod string) call {
	return call{pod: pod, port: 80, method: http.MethodGet, path: "/"}
}

func (s *sidecarFixture) send(ctx context.Context, c call) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, c.method, "http://localhost"+c.path, c.body)
	if err != nil {
		return answer{}, err
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.mediaType != "" {
		request.Header.Set("Content-Type", c.mediaType)
	}
	response, err := s.port(ctx, c.pod, c.port).Client(callTimeout).Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, string(content)}, err
}

// update is the KEP's request: a form with version and url, as curl --data sends it.
func (s *sidecarFixture) update(pod, token, version, from string) answer {
	s.t.Helper()
	form := url.Values{"version": {version}, "url": {from}}.Encode()
	got, err := s.send(s.t.Context(), call{
		pod: pod, port: 5000, method: http.MethodPost, path: "/hot-update", token: token,
		mediaType: "application/x-www-form-urlencoded", body: strings.NewReader(form),
	})
	s.check(err, "update to %s", version)
	return got
}

// updateJSON sends any JSON to a path of the sidecar.
func (s *sidecarFixture) updateJSON(pod, path string, body any) answer {
	s.t.Helper()
	b, err := json.Marshal(body)
	s.check(err, "encode")
	got, err := s.send(s.t.Context(), call{
		pod: pod, port: 5000, method: http.MethodPost, path: path, token: sidecarToken, mediaType: "application/json", body: bytes.NewReader(b),
	})
	s.check(err, "post %s", path)
	return got
}

// accepted fails the test unless the update has been.
func (s *sidecarFixture) accepted(pod, version string) {
	s.t.Helper()
	got := s.update(pod, sidecarToken, version, s.source(version+"/default.conf"))
	if got.code != http.StatusOK || strings.TrimSpace(got.body) != "File downloaded and update successfully" {
		s.t.Fatalf("update to %s: HTTP status %d: %s", version, got.code, got.body)
	}
}

// refused fails the test unless the answer is that status with those words.
func (s *sidecarFixture) refused(got answer, code int, words ...string) {
	s.t.Helper()
	if got.code != code || !containsAll(got.body, words) {
		s.t.Errorf("HTTP status %d, want %d with %q: %s", got.code, code, words, got.body)
	}
}

// serves waits until the program of a pod answers with those words.
func (s *sidecarFixture) serves(pod, words string) {
	s.t.Helper()
	var last answer
	var err error
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Logf("pod %s served last: %+v, %v", pod, last, err)
		}
	})
	s.await("pod "+pod+" to serve "+words, func(ctx context.Context) (bool, error) {
		last, err = s.send(ctx, get(pod))
		return err == nil && last.code == http.StatusOK && strings.Contains(last.body, words), nil
	})
}

// sidecarStatus is what a test wants of GET /status.
type sidecarStatus struct {
	Ready  bool `json:"ready"`
	Config struct {
		Error string `json:"error"`
	} `json:"config"`
	SelfTest []struct {
		Name   string `json:"name"`
		OK     bool   `json:"ok"`
		Needed bool   `json:"needed"`
		Detail string `json:"detail"`
	} `json:"selfTest"`
	Plugins []struct {
		Name string `json:"name"`
		Info struct {
			Current struct {
				Version string `json:"version"`
			} `json:"current"`
		} `json:"info"`
	} `json:"plugins"`
}

// current version of the files.
func (s sidecarStatus) current() string {
	for _, plugin := range s.Plugins {
		if plugin.Name == "hot_update" {
			return plugin.Info.Current.Version
		}
	}
	return ""
}

func (s *sidecarFixture) status(ctx context.Context, pod string) (sidecarStatus, error) {
	s.t.Helper()
	var status sidecarStatus
	got, err := s.send(ctx, call{pod: pod, port: 5000, method: http.MethodGet, path: "/status", token: sidecarToken})
	if err == nil && got.code != http.StatusOK {
		err = fmt.Errorf("HTTP status %d: %s", got.code, got.body)
	}
	if err == nil {
		err = json.Unmarshal([]byte(got.body), &status)
	}
	return status, err
}

// awaitCondition waits until a condition of a pod has a status and a message with those words.
func (s *sidecarFixture) awaitCondition(pod string, kind corev1.PodConditionType, want corev1.ConditionStatus, words ...string) {
	s.t.Helper()
	s.awaitPod(pod, fmt.Sprintf("to have condition %s %s with %q", kind, want, words), func(pod *corev1.Pod) bool {
		return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == kind && c.Status == want && containsAll(c.Message, words)
		})
	})
}

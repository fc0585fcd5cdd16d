package e2e_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/hack/portforward"
)

// TestAReviewOfAnyoneTakesNoMemory sends reviews to the webhooks from loopback, which is not refused as a pod is, since the API server does not
// authenticate itself: no manager is restarted, and requests are still admitted.
func TestAReviewOfAnyoneTakesNoMemory(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.start(s.podOf("web", shell("app", obedient)))
	crashes := s.crashes()
	var managers corev1.PodList
	s.check(s.List(t.Context(), &managers, managerPods()...), "list managers")
	port := &portforward.Port{Kubectl: s.program, Namespace: systemNamespace, Pod: managers.Items[0].Name, Number: 9443}
	t.Cleanup(port.Close)
	caller := &http.Client{Timeout: callTimeout, Transport: &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return port.Dial(ctx) },
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		DisableKeepAlives: true,
	}}
	head := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"42","operation":"CREATE","namespace":"` + s.namespace + `",`
	containers := head + `"object":{"spec":{"podName":"web","containers":[` + strings.Repeat("{},", 2_000_000) + `{"name":"app"}]}}}}`
	groups := head + `"userInfo":{"groups":[` + strings.Repeat(`"",`, 2_000_000) + `""]},"object":{}}}`
	var sending sync.WaitGroup
	for _, path := range []string{
		"/mutate-apps-kruise-io-containerrecreaterequest", "/mutate-refit-dev-restartrollout", "/mutate-apps-kruise-io-sidecarset", "/mutate-v1-pod-sidecarset", "/mutate-v1-pod-podprobe",
	} {
		for _, body := range []string{containers, groups} {
			sending.Go(func() {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://refit-manager"+path, strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				request.Header.Set("Content-Type", "application/json")
				response, err := caller.Do(request)
				if err != nil {
					return // the forwarded connection may break under the load
				}
				defer response.Body.Close()
				if answer, _ := io.ReadAll(response.Body); response.StatusCode == http.StatusOK && strings.Contains(string(answer), `"allowed":true`) {
					t.Errorf("%s: %.300s", path, answer)
				}
			})
		}
	}
	sending.Wait()
	s.ask("r", "web/app")
	s.succeeded("r")
	s.restarted(before, "app", 1)
	if got := s.crashes(); got != crashes {
		t.Errorf("%d crashes of manager or daemon", got-crashes)
	}
}

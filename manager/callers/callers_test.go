package callers_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/refit-project/refit/manager/callers"
)

func TestPodsAreRefusedAndOthersAreNot(t *testing.T) {
	t.Parallel()
	ended := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	twoFamilies := func(p *corev1.Pod) { p.Status.PodIPs = []corev1.PodIP{{IP: tenant}, {IP: "fd00::5"}} }
	for name, tc := range map[string]struct {
		pod     *corev1.Pod
		from    string
		reached bool
		counted string
	}{
		"pod":                            {podAt("shop", "web", tenant), tenant + ":40000", false, "pod"},
		"pod that has another address":   {podAt("shop", "web", "10.0.0.6"), tenant + ":40000", true, "other"},
		"second address of a pod":        {podAt("shop", "web", tenant, twoFamilies), "[fd00::5]:40000", false, "pod"},
		"IPv4 address on an IPv6 socket": {podAt("shop", "web", tenant), "[::ffff:" + tenant + "]:40000", false, "pod"},
		"pod of Refit":                   {podAt("refit-system", "refit-daemon-x", tenant), tenant + ":40000", false, "pod"},
		"pod that has ended":             {podAt("shop", "web", tenant, ended), tenant + ":40000", true, "other"},
		"pod in the host network":        {podAt("shop", "web", tenant, inHostNetwork), tenant + ":40000", true, "exempt_pod"},
		"konnectivity-agent":             {podAt("kube-system", "konnectivity-agent-x", tenant), tenant + ":40000", true, "exempt_pod"},
		"API server":                     {podAt("shop", "web", tenant), apiServer + ":40000", true, "apiserver"},
		"API server, whose address a node has written into a pod": {podAt("shop", "web", apiServer), apiServer + ":40000", true, "apiserver"},
		"port-forward":          {podAt("shop", "web", tenant), "127.0.0.1:40000", true, "loopback"},
		"port-forward, IPv6":    {podAt("shop", "web", tenant), "[::1]:40000", true, "loopback"},
		"address without a pod": {podAt("shop", "web", tenant), "172.16.0.1:40000", true, "other"},
		"unreadable address":    {podAt("shop", "web", tenant), "@", true, "unchecked"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, controllertest.Synced)
				w.Add(tc.pod)
				if reached, _ := w.call(tc.from); reached != tc.reached || w.calls(tc.counted) != 1 {
					t.Errorf("it reached the webhook: %t, want %t; %v counted as %s", reached, tc.reached, w.calls(tc.counted), tc.counted)
				}
			})
		})
	}
}

// A container can call a second before kubelet has reported the address of its pod.
func TestAPodThatCallsBeforeItsAddressIsKnownIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Synced)
		starting := podAt("shop", "web", "")
		w.Add(starting)
		go func() {
			time.Sleep(1500 * time.Millisecond) // of the clock of synctest
			w.Update(starting, podAt("shop", "web", tenant))
		}()
		if reached, took := w.call(tenant + ":40000"); reached || took != 1500*time.Millisecond {
			t.Errorf("it reached the webhook: %t, after %s", reached, took)
		}
	})
}

func TestOnlyTheFirstCallOfAnotherAddressWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Synced)
		if reached, took := w.call("172.16.0.1:40000"); !reached || took != 2*time.Second {
			t.Errorf("first call: it reached the webhook: %t, after %s", reached, took)
		}
		if reached, took := w.call("172.16.0.1:40001"); !reached || took != 0 {
			t.Errorf("second call: it reached the webhook: %t, after %s", reached, took)
		}
		w.Add(podAt("shop", "web", "172.16.0.1")) // reported later than a second
		if reached, _ := w.call("172.16.0.1:40002"); reached {
			t.Error("an address that was trusted is not refused when it is known as the address of a pod")
		}
	})
}

func TestTheAPIServerDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for range 3 {
			if reached, took := w.call(apiServer + ":40000"); !reached || took != 0 {
				t.Errorf("it reached the webhook: %t, after %s", reached, took)
			}
		}
		if w.reads != 1 {
			t.Errorf("%d reads of the addresses of API servers for 3 calls", w.reads)
		}
	})
}

// Availability first: without the addresses of the API servers, or without the pods, calls are let in.
func TestCallsAreLetInWhileNothingIsKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.down = true
		for range 100 {
			if reached, _ := w.call(apiServer + ":40000"); !reached {
				t.Error("the API server is refused")
			}
		}
		if w.calls("unchecked") != 100 || w.reads != 1 {
			t.Errorf("%v counted as unchecked, %d reads", w.calls("unchecked"), w.reads)
		}
		w.Add(podAt("shop", "web", tenant))
		if reached, _ := w.call(tenant + ":40000"); reached {
			t.Error("a known pod is not refused")
		}
		w.down = false
		time.Sleep(10 * time.Second) // of the clock of synctest
		w.Add(podAt("shop", "api", apiServer))
		if reached, _ := w.call(apiServer + ":40000"); !reached || w.calls("apiserver") != 1 {
			t.Errorf("the API server is refused, or counted %v times", w.calls("apiserver"))
		}
	})
}

// Containers of a pod that is deleted with --force run on.
func TestAPodThatIsDeletedByForceIsStillRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Synced)
		w.Add(podAt("shop", "web", tenant))
		w.Delete(podAt("shop", "web", tenant))
		if reached, _ := w.call(tenant + ":40000"); reached {
			t.Error("it is not refused right after the deletion")
		}
		time.Sleep(10 * time.Minute) // of the clock of synctest
		if reached, _ := w.call(tenant + ":40000"); !reached {
			t.Error("the address is refused for ever")
		}
	})
}

// The address of a pod is given to the next one before the first is gone from the API server.
func TestAnAddressThatPassesToAnotherPod(t *testing.T) {
	t.Parallel()
	young := func(p *corev1.Pod) { p.CreationTimestamp = metav1.Unix(1000, 0) }
	old, oldAgent := podAt("shop", "old", tenant), podAt("kube-system", "old", tenant)
	web, agent, node := podAt("shop", "web", tenant, young), podAt("kube-system", "agent", tenant, young), podAt("shop", "agent", tenant, inHostNetwork)
	moved, gone := podAt("shop", "web", "10.0.0.6", young), podAt("shop", "old", "")
	for name, tc := range map[string]struct {
		events         func(*world)
		reached, later bool // at once, and when the addresses of deleted pods are dropped
	}{
		"the first is deleted":             {events: func(w *world) { w.Add(old); w.Add(web); w.Delete(old) }},
		"the first changes once more":      {events: func(w *world) { w.Add(old); w.Add(web); w.Update(old, old); w.Delete(old) }},
		"the first has ended":              {events: func(w *world) { w.Add(old); w.Add(web); w.Update(old, gone) }},
		"the first is deleted before":      {events: func(w *world) { w.Add(old); w.Delete(old); w.Add(web) }},
		"to an allowed pod":                {events: func(w *world) { w.Add(old); w.Add(agent); w.Update(old, old) }, reached: true, later: true},
		"to an allowed pod, after its end": {events: func(w *world) { w.Add(old); w.Delete(old); w.Add(agent) }, reached: true, later: true},
		"from an allowed pod":              {events: func(w *world) { w.Add(oldAgent); w.Delete(oldAgent); w.Add(web) }},
		"a node writes its own into a pod": {events: func(w *world) { w.Add(node); w.Add(web) }, reached: true, later: true},
		"to none: its sandbox is new":      {events: func(w *world) { w.Add(web); w.Update(web, moved) }, later: true},
		"to an allowed one: it is new":     {events: func(w *world) { w.Add(web); w.Update(web, moved); w.Add(agent) }, reached: true, later: true},
		"the pod was never seen":           {events: func(w *world) { w.Delete(old); w.Add(agent) }, reached: true, later: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, controllertest.Synced)
				tc.events(w)
				if reached, _ := w.call(tenant + ":40000"); reached != tc.reached {
					t.Errorf("it reached the webhook: %t, want %t", reached, tc.reached)
				}
				time.Sleep(10 * time.Minute) // of the clock of synctest
				if reached, _ := w.call(tenant + ":40000"); reached != tc.later {
					t.Errorf("later it reached the webhook: %t, want %t", reached, tc.later)
				}
			})
		})
	}
}

// The next pod that gets the address may belong to anybody.
func TestTheAddressOfADeletedAllowedPodIsNotTrusted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Synced)
		agent := podAt("kube-system", "agent", tenant)
		w.Add(agent)
		w.Delete(agent)
		if _, took := w.call(tenant + ":40000"); took != 2*time.Second || w.calls("other") != 1 {
			t.Errorf("judged after %s, %v counted as other", took, w.calls("other"))
		}
	})
}

func TestWithAnAuthorityOnlyCertificatesCount(t *testing.T) {
	t.Parallel()
	checked, err := callers.New(callers.Config{RefusePods: true, Certificates: true, Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	handler := checked.Check(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for name, tc := range map[string]struct {
		connection *tls.ConnectionState
		want       int
	}{
		"verified":       {&tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{}}}}, http.StatusOK},
		"no certificate": {&tls.ConnectionState{}, http.StatusForbidden},
		"no TLS":         {nil, http.StatusForbidden},
	} {
		request, response := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mutate", body{t}), httptest.NewRecorder()
		request.RemoteAddr, request.TLS = "127.0.0.1:40000", tc.connection
		if handler.ServeHTTP(response, request); response.Code != tc.want {
			t.Errorf("%s: status %d, want %d: %s", name, response.Code, tc.want, response.Body)
		}
	}
}

func TestAPodThatCallsAgainIsLoggedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controllertest.Synced)
	for i := range 2 {
		w.Add(podAt("shop", fmt.Sprint("web-", i), fmt.Sprint("10.0.0.", i)))
	}
	for i := range 10 {
		w.call(fmt.Sprintf("10.0.0.%d:40000", i%2))
		w.Update(podAt("shop", "web-0", "10.0.0.0"), podAt("shop", "web-0", "10.0.0.0"))
	}
	if n := strings.Count(w.log.String(), "refused a call"); n != 2 || !strings.Contains(w.log.String(), "pod=shop/web-1 address=10.0.0.1 path=/mutate") {
		t.Errorf("logged %d times:\n%s", n, w.log.String())
	}
}

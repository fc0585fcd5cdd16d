package daemon

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/test/kit/fakecri"
	"github.com/refit-project/refit/test/kit/poll"
)

// A thousand requests at once, 50 of them for one pod (a fifth of that with the race detector): each stops its container
// once, requests of one pod in the order of their creation, with a bounded number of writes, and no work remains
// afterwards.
func TestThousandRequestsAtOnce(t *testing.T) {
	t.Parallel()
	pods, ofOnePod := 951, 50
	if raceDetector {
		pods, ofOnePod = 191, 10
	}
	server, runtime := newAPIServer(t), fakecri.Start(t)
	var mu sync.Mutex
	byUID := map[string]*corev1.Pod{}
	for n := range pods {
		pod := podOn(runtime, fmt.Sprintf("web-%d", n))
		byUID[string(pod.UID)] = pod
		server.put(t, podCollection, pod)
	}
	runtime.ActAsKubelet(fakecri.Kubelet{
		Delay: func(int) time.Duration { return 5 * time.Millisecond },
		OnStart: func(instance fakecri.Instance) {
			mu.Lock()
			defer mu.Unlock()
			next := byUID[instance.PodUID].DeepCopy()
			next.Status.ContainerStatuses[0].ContainerID = fakecri.Name + "://" + instance.ID
			server.put(t, podCollection, next)
		},
	})
	config, _ := running(t, server, strings.TrimPrefix(runtime.Endpoint(), "unix://"))
	poll.Until(t, "the daemon is ready", func() bool { code, _ := fetch(t, config.Addr, "/readyz"); return code == http.StatusOK })

	begin := time.Now().Add(-time.Hour)
	var names, inOrder []string
	ask := func(name string, pod *corev1.Pod) {
		request := requestFor(pod, "node-1")
		request.Name, request.UID = name, types.UID("uid-"+name)
		request.CreationTimestamp.Time = begin.Add(time.Duration(len(names)) * time.Second)
		request.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{ForceRecreate: true}
		server.put(t, requestCollection, request)
		names = append(names, "shop/"+name)
	}
	for n := range ofOnePod {
		ask(fmt.Sprintf("busy-%d", n), byUID["uid-web-0"])
		inOrder = append(inOrder, names[n])
	}
	for n := 1; n < pods; n++ {
		ask(fmt.Sprintf("once-%d", n), byUID[fmt.Sprintf("uid-web-%d", n)])
	}

	for want := range len(names) / 100 {
		poll.Until(t, fmt.Sprintf("%d requests have ended", 100*(want+1)), func() bool { return server.ended() >= 100*(want+1) })
	}

	if stops := len(runtime.Calls("StopContainer")); stops != len(names) {
		t.Errorf("%d stops for %d requests", stops, len(names))
	}
	writes, order := server.writes()
	if most := 3 * len(names); writes > most {
		t.Errorf("%d writes of requests, want at most %d: begun, stopped and ended", writes, most)
	}
	order = slices.DeleteFunc(order, func(name string) bool { return !slices.Contains(inOrder, name) })
	if !slices.Equal(order, inOrder) {
		t.Errorf("requests of one pod ended in the order %v, want the order of their creation", order)
	}
	// The daemon counts a request after the API server has answered its last write.
	for _, want := range []string{
		fmt.Sprintf(`refit_crr_completed_total{reason="Succeeded",result="succeeded"} %d`, len(names)), "refit_crr_acts_in_flight 0",
	} {
		poll.Until(t, "metrics have "+want, func() bool {
			_, metrics := fetch(t, config.MetricsAddr, "/metrics")
			return strings.Contains(metrics, want+"\n")
		})
	}
}

func hasEnded(request map[string]any) bool {
	status, _ := request["status"].(map[string]any)
	return status["completionTime"] != nil
}

// ended counts the requests that have ended.
func (s *apiServer) ended() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended := 0
	for _, request := range s.current[requestCollection] {
		if hasEnded(request) {
			ended++
		}
	}
	return ended
}

// writes counts the daemon's writes of requests and names those that ended, in the order in which they did.
func (s *apiServer) writes() (count int, names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.log {
		if c.collection != requestCollection || c.kind != "MODIFIED" {
			continue
		}
		count++
		if hasEnded(c.object) && !slices.Contains(names, c.key) {
			names = append(names, c.key)
		}
	}
	return count, names
}

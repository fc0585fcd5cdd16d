package node_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1alpha1"
)

// serverVariable has the test binary serve HTTP, in a process of its own so that its CPU time does not count.
const serverVariable = "REFIT_TEST_SERVE_HTTP"

// serveHTTP prints its address and serves until standard input ends.
func serveHTTP() {
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { fmt.Fprint(out, "ok") }))
	defer server.Close()
	fmt.Println(server.Listener.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func serverProcess(b *testing.B) (address string, port int) {
	b.Helper()
	program, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	command := exec.CommandContext(b.Context(), program)
	command.Env = append(os.Environ(), serverVariable+"=1")
	stdin, errIn := command.StdinPipe()
	stdout, errOut := command.StdoutPipe()
	if errIn != nil || errOut != nil || command.Start() != nil {
		b.Fatal("the server does not start")
	}
	b.Cleanup(func() { _ = stdin.Close(); _ = command.Wait() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	address = strings.TrimSpace(line)
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		b.Fatal(err)
	}
	if port, err = strconv.Atoi(text); err != nil {
		b.Fatal(err)
	}
	return address, port
}

// BenchmarkHTTPProbesEverySecond measures the CPU time of 100 and 500 probes every second, from the timer to the recorded
// result, beside as many tickers that each send a request through http.Transport without kept connections, as kubelet
// does. Each iteration lasts a second.
func BenchmarkHTTPProbesEverySecond(b *testing.B) {
	address, port := serverProcess(b)
	for _, probes := range []int{100, 500} {
		b.Run(fmt.Sprintf("daemon/%d", probes), func(b *testing.B) {
			w := newWorld(b)
			defer w.close()
			for i := range probes / 10 {
				name := fmt.Sprintf("p%02d", i)
				w.putPodWith(name, 1, func(pod *corev1.Pod) { pod.Status.PodIP = "127.0.0.1" }, "game")
				e := entry(name)
				for j := range 10 {
					one := httpGet(func(g *corev1.HTTPGetAction) { g.Port = intstr.FromInt(port) })
					one.Name = fmt.Sprintf("m#%d", j)
					e.Probes = append(e.Probes, one)
				}
				w.want(append(w.entries(), e)...)
			}
			w.run()
			measureCPU(b, func() uint64 { return w.metric("refit_probe_lateness_seconds").GetHistogram().GetSampleCount() })
		})
		b.Run(fmt.Sprintf("http.Transport/%d", probes), func(b *testing.B) {
			var sent atomic.Uint64
			client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}
			ctx, cancel := context.WithCancel(b.Context())
			var running sync.WaitGroup
			for range probes {
				running.Go(func() { sendEverySecond(ctx, client, "http://"+address, &sent) })
			}
			measureCPU(b, sent.Load)
			cancel()
			running.Wait()
		})
	}
}

func (w *world) entries() []v1alpha1.PodProbe {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.object.Spec.PodProbes
}

func sendEverySecond(ctx context.Context, client *http.Client, url string, sent *atomic.Uint64) {
	timer := time.NewTimer(rand.N(time.Second))
	defer timer.Stop()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	select {
	case <-timer.C:
		ticker.Reset(time.Second)
	case <-ctx.Done():
		return
	}
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			panic(err) // the URL is ours
		}
		if response, err := client.Do(request); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			sent.Add(1)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// measureCPU reports the CPU time of this process for each probe, once all probes are at work.
func measureCPU(b *testing.B, count func() uint64) {
	b.Helper()
	time.Sleep(3 * time.Second)
	used := func() time.Duration {
		var t unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
			b.Fatal(err)
		}
		return time.Duration(t.Nano())
	}
	began, before := used(), count()
	for b.Loop() {
		time.Sleep(time.Second)
	}
	b.ReportMetric(float64((used()-began).Microseconds())/float64(count()-before), "cpu-us/probe")
}

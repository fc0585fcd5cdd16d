package node_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/cri"
)

func withHandler(h corev1.ProbeHandler) v1alpha1.ContainerProbe {
	p := v1alpha1.ContainerProbe{Name: "m#bad", ContainerName: "game"}
	p.Probe.ProbeHandler = h
	return p
}

func httpGet(change func(*corev1.HTTPGetAction)) v1alpha1.ContainerProbe {
	get := &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(80)}
	change(get)
	return withHandler(corev1.ProbeHandler{HTTPGet: get})
}

// What is written into a NodePodProbe by hand is refused with a reason, and the probe beside it works on.
func TestHostileSpecIsIgnoredWithAnEvent(t *testing.T) {
	t.Parallel()
	timed := func(change func(*corev1.Probe)) v1alpha1.ContainerProbe {
		p := execProbe("m#bad", "game", "bad")
		change(&p.Probe.Probe)
		return p
	}
	tests := map[string]struct {
		entries []v1alpha1.PodProbe
		words   []string
	}{
		"host of httpGet":     {[]v1alpha1.PodProbe{entry("a", httpGet(func(g *corev1.HTTPGetAction) { g.Host = "169.254.169.254" }))}, []string{"m#bad", "host"}},
		"host of tcpSocket":   {[]v1alpha1.PodProbe{entry("a", withHandler(corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Host: "localhost", Port: intstr.FromInt32(80)}}))}, []string{"host"}},
		"path":                {[]v1alpha1.PodProbe{entry("a", httpGet(func(g *corev1.HTTPGetAction) { g.Path = "/\r\nX: y" }))}, []string{"path"}},
		"scheme":              {[]v1alpha1.PodProbe{entry("a", httpGet(func(g *corev1.HTTPGetAction) { g.Scheme = "file" }))}, []string{"http"}},
		"header":              {[]v1alpha1.PodProbe{entry("a", httpGet(func(g *corev1.HTTPGetAction) { g.HTTPHeaders = []corev1.HTTPHeader{{Name: "a\nb"}} }))}, []string{"header"}},
		"port 0":              {[]v1alpha1.PodProbe{entry("a", httpGet(func(g *corev1.HTTPGetAction) { g.Port = intstr.FromInt32(0) }))}, []string{"port"}},
		"port 70000":          {[]v1alpha1.PodProbe{entry("a", withHandler(corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 70000}}))}, []string{"port"}},
		"port without a name": {[]v1alpha1.PodProbe{entry("a", httpGet(func(g *corev1.HTTPGetAction) { g.Port = intstr.FromString("web") }))}, []string{"port", "web"}},
		"no handler":          {[]v1alpha1.PodProbe{entry("a", withHandler(corev1.ProbeHandler{}))}, []string{"exec", "grpc"}},
		"two handlers": {[]v1alpha1.PodProbe{entry("a", withHandler(corev1.ProbeHandler{
			Exec: &corev1.ExecAction{Command: []string{"bad"}}, GRPC: &corev1.GRPCAction{Port: 1},
		}))}, []string{"only one"}},
		"no command":        {[]v1alpha1.PodProbe{entry("a", withHandler(corev1.ProbeHandler{Exec: &corev1.ExecAction{}}))}, []string{"command"}},
		"negative period":   {[]v1alpha1.PodProbe{entry("a", timed(func(p *corev1.Probe) { p.PeriodSeconds = -1 }))}, []string{"period"}},
		"negative timeout":  {[]v1alpha1.PodProbe{entry("a", timed(func(p *corev1.Probe) { p.TimeoutSeconds = -5 }))}, []string{"timeout"}},
		"unknown container": {[]v1alpha1.PodProbe{entry("a", execProbe("m#bad", "absent", "bad"))}, []string{"container", "absent"}},
		"name given twice":  {[]v1alpha1.PodProbe{entry("a", execProbe("m#bad", "game", "good"), execProbe("m#bad", "game", "bad"))}, []string{"m#bad", "twice"}},
		"no name":           {[]v1alpha1.PodProbe{entry("a", execProbe("", "game", "bad"))}, []string{"name"}},
		"pod of another node": {
			[]v1alpha1.PodProbe{{Namespace: "shop", Name: "elsewhere", UID: "uid-elsewhere", Probes: []v1alpha1.ContainerProbe{execProbe("m#bad", "game", "bad")}}},
			[]string{"shop/elsewhere", "node-1"},
		},
		"another UID": {
			[]v1alpha1.PodProbe{{Namespace: "shop", Name: "a", UID: "stale", Probes: []v1alpha1.ContainerProbe{execProbe("m#bad", "game", "bad")}}},
			[]string{"shop/a", "stale"},
		},
		"UID of another pod": {
			[]v1alpha1.PodProbe{{Namespace: "shop", Name: "a", UID: "uid-good", Probes: []v1alpha1.ContainerProbe{execProbe("m#bad", "game", "bad")}}},
			[]string{"shop/a", "UID"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				w.putPod("good", 1, "game")
				w.putPod("a", 1, "game")
				w.want(append([]v1alpha1.PodProbe{entry("good", execProbe("m#good", "game", "good"))}, tt.entries...)...)
				w.run()
				w.pass(30 * time.Second)
				if !w.hasEvent(append([]string{"Warning NodePodProbe node-1 ProbeIgnored"}, tt.words...)...) {
					t.Errorf("events %q want one with %q", w.events, tt.words)
				}
				for _, e := range w.execs {
					if strings.HasSuffix(e, " bad") {
						t.Fatalf("it was run: %q", e)
					}
				}
				if got := w.shows(); len(got) == 0 || got[len(got)-1] != "good m#good Succeeded idle" {
					t.Errorf("status %q", got)
				}
				if _, _, events := w.count(); events > 4 {
					t.Errorf("%d events: %q", events, w.events)
				}
			})
		})
	}
}

func TestTenThousandProbesAreBounded(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		var flood []v1alpha1.ContainerProbe
		for i := range 10_000 {
			flood = append(flood, execProbe(fmt.Sprintf("m#%d", i), "game", "flood"))
		}
		w.putPod("a", 1, "game")
		w.putPod("good", 1, "game")
		w.want(entry("a", flood...), entry("good", execProbe("m#good", "game", "good")))
		w.run()
		w.pass(10 * time.Second)
		if !w.hasEvent("ProbeIgnored", "9744 probes are left out", "256") {
			t.Errorf("events %.2000q", w.events)
		}
		if n := len(w.shows()); n != 257 {
			t.Errorf("%d states", n)
		}
		late := 0
		for _, e := range w.execs {
			if strings.HasSuffix(e, " good") {
				late++
			}
		}
		if late < 8 {
			t.Errorf("the other pod's probe was asked %d times in 10 s", late)
		}
	})
}

// The object of a full node whose probes all have long messages stays below the size limit.
func TestFullNodeFitsIntoAnObject(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.answers(func(string, string) (cri.ExecResult, error) {
			return cri.ExecResult{Stdout: strings.Repeat("<é>", 1000)}, nil
		})
		var entries []v1alpha1.PodProbe
		for i := range 250 {
			name := fmt.Sprintf("pod-with-a-name-of-usual-length-%03d", i)
			w.putPod(name, 1, "game")
			entries = append(entries, entry(name, execProbe("marker#one", "game", "x"), execProbe("marker#two", "game", "x"), execProbe("marker#three", "game", "x")))
		}
		w.want(entries...)
		w.run()
		w.pass(time.Minute)
		size := 0
		for _, line := range w.shows() {
			size += len(line)
			if strings.ContainsRune(line, '\uFFFD') {
				t.Fatalf("cut within a rune: %q", line)
			}
		}
		if n := len(w.shows()); n != 750 || size > 900<<10 {
			t.Errorf("%d states, %d bytes", n, size)
		}
		if !w.hasEvent("NodePodProbe node-1 ProbeMessagesCut") {
			t.Errorf("nothing said of it")
		}
		w.answers(func(string, string) (cri.ExecResult, error) {
			return cri.ExecResult{Stdout: strings.Repeat("<ü>", 1000)}, nil
		})
		before, _, events := w.count()
		w.pass(time.Minute)
		if after, _, now := w.count(); after == before || now != events {
			t.Errorf("%d writes and %d Events for other messages of the same length", after-before, now-events)
		}
	})
}

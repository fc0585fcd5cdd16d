package e2e_test

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/refit-project/refit/api/v1beta1"
)

// attacksByPods are pods, and annotations of pods, as none means well with.
func attacksByPods() map[string]attack {
	record := func(resources string) map[string]string {
		return map[string]string{
			v1beta1.AnnotationSidecarSetList:               "$SET",
			v1beta1.AnnotationSidecarSetInPlaceUpdateState: `{"$SET":{"revision":"x","nextContainerResources":{"log":{"requests":{"cpu":"` + resources + `"}}}}}`,
		}
	}
	milli := brought(func(c *corev1.Container) {
		c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	})
	hash := func(text string) map[string]string {
		return map[string]string{v1beta1.AnnotationSidecarSetList: "$SET", v1beta1.AnnotationSidecarSetHash: text}
	}
	forged := hash(`{"$SET":"x"}`)
	all := map[string]attack{
		"quantity that divides by zero":        onPod(record("1e2147483647"), milli),
		"quantity that takes minutes":          onPod(record("1e300000000"), milli),
		"quantity of many digits":              onPod(record(strings.Repeat("9", 5000)), milli),
		"record with a megabyte of quantities": onPod(record(strings.Repeat("1", 200<<10)), milli),
		"record from the year 9999":            annotatedLater(map[string]string{v1beta1.AnnotationInPlaceUpdateState: `{"revision":"x","updateTimestamp":"9999-12-31T23:59:59Z","lastContainerStatuses":{"app":{"imageID":"x"}}}`}),
		"record of sidecars from the year 9999": annotatedLater(map[string]string{
			v1beta1.AnnotationSidecarSetList: "$SET", v1beta1.AnnotationSidecarSetInPlaceUpdateState: `{"$SET":{"revision":"x","updateTimestamp":"9999-12-31T23:59:59Z"}}`}),
		"claim from the year 9999":        annotatedLater(map[string]string{v1beta1.AnnotationDisruptionClaim: `{"holder":"x","since":"9999-12-31T23:59:59Z"}`}),
		"claim that is no JSON":           annotatedLater(map[string]string{v1beta1.AnnotationDisruptionClaim: "\u202e{{{"}),
		"deep record":                     onPod(hash(strings.Repeat(`{"a":`, 5000))),
		"hash that ends the JSON":         onPod(hash("x}")),
		"hash in unicode":                 onPod(hash(`{"$SET":"\u202e\ud800"}`)),
		"hash of 200 kB":                  onPod(hash(strings.Repeat("x", 200<<10))),
		"aborted":                         annotatedLater(map[string]string{v1beta1.AnnotationSidecarSetList: "$SET", v1beta1.AnnotationSidecarSetAborted: `{"$SET":"x"}`}),
		"skipped":                         onPod(map[string]string{v1beta1.AnnotationSidecarSetSkipped: `{"$SET":"because"}`}),
		"working container of an upgrade": annotatedLater(map[string]string{v1beta1.AnnotationHotUpgradeWorking: `{"log":"log-9"}`, "version.sidecarset.kruise.io/log": "99999999999999999999"}),
		"forged report of the runtime":    annotatedLater(map[string]string{v1beta1.AnnotationRuntimeContainersMeta: strings.Repeat(`[`, 10000)}),
		"other annotations of sidecars":   onPod(map[string]string{"kruise.io/sidecarset-x": strings.Repeat("y", 200<<10)}),
		"probes for the sidecar, forged":  onPod(map[string]string{"kruise.io/podprobe": strings.Repeat(`[{"a":`, 2000)}),
		"opt-out":                         onPod(map[string]string{v1beta1.AnnotationSidecarInject: "false"}),
		"another image":                   onPod(map[string]string{v1beta1.PrefixSidecarImage + "log": "evil"}),
		"resources that take minutes":     onPod(map[string]string{v1beta1.PrefixSidecarResources + "log": `{"limits":{"cpu":"1e300000000"}}`}),
		"mark without the container":      onPod(map[string]string{v1beta1.AnnotationSidecarSetList: "$SET"}),
		"argument that takes minutes":     onPod(forged, brought(func(c *corev1.Container) { c.Args = []string{"1e300000000"} })),
		"variable that takes minutes": onPod(nil, func(p *corev1.Pod) {
			p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "GOMAXPROCS", Value: "1e300000000"}}
		}),
		"LD_PRELOAD":       onPod(forged, brought(func(c *corev1.Container) { c.Env = append(c.Env, corev1.EnvVar{Name: "LD_PRELOAD", Value: "/evil.so"}) })),
		"a variable twice": onPod(forged, brought(func(c *corev1.Container) { c.Env = append(c.Env, c.Env...) })),
		"another command":  onPod(forged, brought(func(c *corev1.Container) { c.Command = []string{"sleep", "infinity"} })),
		"a hook": onPod(forged, brought(func(c *corev1.Container) {
			c.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"evil"}}}}
		})),
		"a volume over /etc": onPod(forged, brought(func(c *corev1.Container) { c.VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/etc"}} }), func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v"}}
		}),
		"2,000 containers": onPod(nil, func(p *corev1.Pod) {
			for i := range 2000 {
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: fmt.Sprint("c-", i), Image: image})
			}
		}),
		"3,000 labels": onPod(nil, func(p *corev1.Pod) {
			for i := range 3000 {
				p.Labels[fmt.Sprintf("example.com/%050d", i)] = "x"
			}
		}),
		"a pod that never ends": onPod(nil, func(p *corev1.Pod) {
			p.Finalizers, p.Spec.TerminationGracePeriodSeconds = []string{"example.com/never"}, new(int64(31536000))
		}),
		"a pod like refit-daemon": onPod(nil, func(p *corev1.Pod) {
			p.Labels["app.kubernetes.io/name"], p.Labels["control-plane"] = "refit-daemon", "daemon"
		}),
		"a pod on a node that does not exist": onPod(nil, func(p *corev1.Pod) {
			p.Spec.NodeSelector, p.Spec.NodeName = nil, "no-such-node"
		}),
	}
	return all
}

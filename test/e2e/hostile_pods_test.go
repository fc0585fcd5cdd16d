package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
		"a forged mark": onPod(forged, brought(func(c *corev1.Container) { c.Env = append(c.Env, corev1.EnvVar{Name: "LD_PRELOAD", Value: "/evil.so"}) })),
		"LD_PRELOAD": exported(func(_ *corev1.Pod, c *corev1.Container) {
			c.Env = append(c.Env, corev1.EnvVar{Name: "LD_PRELOAD", Value: "/evil.so"})
		}),
		"a variable twice": exported(func(_ *corev1.Pod, c *corev1.Container) {
			c.Env = append(c.Env, corev1.EnvVar{Name: "PORT", Value: "1"})
		}),
		"another command": exported(func(_ *corev1.Pod, c *corev1.Container) { c.Command = []string{"sleep", "infinity"} }),
		"one argument":    exported(func(_ *corev1.Pod, c *corev1.Container) { c.Args = []string{"infinity"} }),
		"a hook": exported(func(_ *corev1.Pod, c *corev1.Container) {
			c.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"evil"}}}}
		}),
		"a volume over /etc": exported(func(p *corev1.Pod, c *corev1.Container) {
			p.Spec.Volumes, c.VolumeMounts = []corev1.Volume{{Name: "v"}}, []corev1.VolumeMount{{Name: "v", MountPath: "/etc"}}
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

// exported is a pod as from the manifest of one with the sidecar, with a change of the sidecar.
func exported(change func(*corev1.Pod, *corev1.Container)) attack {
	return attack{do: func(ctx context.Context, a attacker) error {
		from := a.pod()
		if err := a.answered(ctx, func(ctx context.Context) error { return a.Create(ctx, from, client.DryRunAll) }); err != nil {
			return err
		}
		pod, sidecar := a.pod(), containerOf(from, "log")
		pod.Annotations, sidecar.VolumeMounts = from.Annotations, nil // the token's has a volume of that pod
		change(pod, &sidecar)
		pod.Spec.Containers = append([]corev1.Container{sidecar}, pod.Spec.Containers...)
		if err := a.answered(ctx, func(ctx context.Context) error { return a.Create(ctx, pod) }); err != nil {
			return err
		}
		return injected(pod)
	}}
}

// injected says how the sidecar of a pod that was created differs from what the SidecarSet says, in what its owner would have run by it.
func injected(pod *corev1.Pod) error {
	c := containerOf(pod, "log")
	var variables []string
	for _, v := range c.Env {
		variables = append(variables, v.Name)
	}
	slices.Sort(variables)
	own := slices.DeleteFunc(slices.Clone(c.VolumeMounts), func(m corev1.VolumeMount) bool { return strings.HasPrefix(m.MountPath, "/var/run/secrets/") })
	switch {
	case c.Image != image || !slices.Equal(c.Command, []string{"sleep", "1000"}) || len(c.Args) > 0:
		return fmt.Errorf("%w: the sidecar of pod %s runs %s %q %q", errWrong, pod.Name, c.Image, c.Command, c.Args)
	case !slices.Equal(variables, []string{v1beta1.EnvSidecarInjected, "PORT"}):
		return fmt.Errorf("%w: the sidecar of pod %s has the variables %q", errWrong, pod.Name, variables)
	case c.Lifecycle != nil || len(own) > 0:
		return fmt.Errorf("%w: the sidecar of pod %s has the hooks %+v and mounts %+v", errWrong, pod.Name, c.Lifecycle, own)
	}
	return nil
}

// unhandled are the objects for which code of Refit has failed, each with the attack that has made it.
func (s *fixture) unhandled(ctx context.Context) (found []string) {
	s.t.Helper()
	var events corev1.EventList
	s.check(s.List(ctx, &events, client.MatchingFields{"reason": "NotHandled"}), "list Events")
	for i := range events.Items {
		of := events.Items[i].InvolvedObject
		pod := &corev1.Pod{}
		if of.Kind == "Pod" {
			_ = s.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: of.Name}, pod) // without one there is no attack to name
		}
		found = append(found, fmt.Sprintf("%s: %s %s/%s: %s", pod.Annotations[byAttack], of.Kind, of.Namespace, of.Name, events.Items[i].Message))
	}
	return found
}

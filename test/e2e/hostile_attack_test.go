package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/v1beta1"
)

// attacker is a tenant with the role edit in two namespaces, who has stolen tokens.
type attacker struct {
	client.Client
	namespace string
	own       string             // where it may write the status of pods too, and where only those attacks are made
	other     string             // the namespace of the tenant that must not notice
	victim    *corev1.Pod        // of the other tenant, which no operation of a canary touches
	set       string             // a SidecarSet that selects the pods of both
	image     string             // that the other tenant pulls
	stolen    stolen             // tokens of programs
	bystander string             // a SidecarSet of the other tenant
	programs  map[string]program // of Refit, as they were after the last round
	others    map[string]string  // objects of the other tenant, likewise
	round     int
	attack    string // the one that is being made
	share     int    // of each flood one in so many is written
}

// byAttack is an annotation with the name of the attack that has made a pod.
const byAttack = "example.com/attack"

// attack is one thing that an attacker does. With words it has to be refused with these; without, the API server may take it.
type attack struct {
	do    func(context.Context, attacker) error
	words []string
}

// object is the creation of an object from YAML, with the name of the attack if it has none.
func object(manifest string, words ...string) attack {
	return attack{words: words, do: func(ctx context.Context, a attacker) error {
		made, err := a.parse(manifest)
		if err != nil {
			return err
		}
		return a.answered(ctx, func(ctx context.Context) error { return a.Create(ctx, made) })
	}}
}

// parse is the object of a manifest.
func (a attacker) parse(manifest string) (*unstructured.Unstructured, error) {
	for key, value := range map[string]func() string{
		"$NAMESPACE": func() string { return a.namespace }, "$OTHER": func() string { return a.other }, "$SET": func() string { return a.set },
		"$IMAGE": func() string { return a.image }, "$ROUND": func() string { return fmt.Sprint(a.round) }, "$LIST": func() string { return images(a.few(255)) },
		"$LONG": func() string { return strings.Repeat("x", 200<<10) },
	} {
		if strings.Contains(manifest, key) {
			manifest = strings.ReplaceAll(manifest, key, value())
		}
	}
	made := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &made.Object); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	if made.GetNamespace() == "" {
		made.SetNamespace(a.namespace)
	}
	if made.GetName() == "" {
		made.SetGenerateName("a-")
	}
	return made, nil
}

// onPod is a pod with annotations, which runs on no node. It has a container as a SidecarSet injects it.
func onPod(annotations map[string]string, change ...func(*corev1.Pod)) attack {
	return attack{do: func(ctx context.Context, a attacker) error {
		pod := a.pod()
		for key, value := range annotations {
			pod.Annotations[key] = strings.ReplaceAll(value, "$SET", a.set)
		}
		for _, c := range change {
			c(pod)
		}
		if err := a.answered(ctx, func(ctx context.Context) error { return a.Create(ctx, pod) }); err != nil {
			return err
		}
		return injected(pod)
	}}
}

// annotatedLater is onPod for what is written to a pod that exists already.
func annotatedLater(annotations map[string]string) attack {
	return attack{do: func(ctx context.Context, a attacker) error {
		pod := a.pod()
		if err := a.Create(ctx, pod); err != nil {
			return err
		}
		wanted := map[string]string{}
		for key, value := range annotations {
			wanted[key] = strings.ReplaceAll(value, "$SET", a.set)
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": wanted}})
		if err != nil {
			return err
		}
		return a.Patch(ctx, pod, merge(string(patch)))
	}}
}

// errUnanswered: a client gives up before a write is answered.
var errUnanswered = errors.New("not answered")

// answered makes a write, which has to be answered, or refused, before a client gives up.
func (a attacker) answered(ctx context.Context, write func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, attackPatience)
	defer cancel()
	err := write(limited)
	if limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%w within %s: %w", errUnanswered, attackPatience, err)
	}
	return err
}

func (a attacker) pod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: a.namespace, GenerateName: "a-", Labels: map[string]string{"sidecarset": "hostile"}, Annotations: map[string]string{byAttack: a.attack},
	}}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: image}}
	pod.Spec.NodeSelector = map[string]string{"refit.dev/no-such-node": "true"}
	return pod
}

// brought is the container of the SidecarSet, as its owner would have it.
func brought(change func(*corev1.Container)) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		c := corev1.Container{Name: "log", Image: image, Command: []string{"sleep", "1000"}, Env: []corev1.EnvVar{{Name: v1beta1.EnvSidecarInjected, Value: "true"}}}
		change(&c)
		pod.Spec.Containers = append(pod.Spec.Containers, c)
	}
}

const (
	nothing = "no.registry.invalid/a"
)

// chosen returns the attacks whose names match the regular expression in REFIT_ATTACKS; an empty one matches all.
func chosen(pattern string) (map[string]attack, error) {
	names, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("REFIT_ATTACKS: %w", err)
	}
	all := attacks()
	maps.DeleteFunc(all, func(name string, _ attack) bool { return !names.MatchString(name) })
	if len(all) == 0 {
		return nil, fmt.Errorf("REFIT_ATTACKS: no attack matches %q", pattern)
	}
	return all, nil
}

// attacks by name.
func attacks() map[string]attack {
	all := map[string]attack{}
	for _, some := range []map[string]attack{attacksByPods(), attacksByObjects(), attacksByFloods(), attacksByAccess(), attacksByStatus(), attacksByPolicies(), attacksByTokens()} {
		maps.Copy(all, some)
	}
	return all
}

func attacksByObjects() map[string]attack {
	request := func(spec string) string {
		return "{apiVersion: apps.kruise.io/v1beta1, kind: ContainerRecreateRequest, spec: {" + spec + "}}"
	}
	marker := func(selector, probe string) string {
		return "{apiVersion: apps.kruise.io/v1alpha1, kind: PodProbeMarker, spec: {selector: {" + selector + "}, probes: [{name: p, containerName: app, podConditionType: example.com/p, probe: {" + probe + "}}]}}"
	}
	rollout := func(spec string) string {
		return "{apiVersion: refit.dev/v1alpha1, kind: RestartRollout, spec: {" + spec + "}}"
	}
	job := func(spec string) string {
		return "{apiVersion: apps.kruise.io/v1beta1, kind: ImagePullJob, spec: {completionPolicy: {type: Never}, " + spec + "}}"
	}
	return map[string]attack{
		"request for a pod of the other":       object(request("podName: request, containers: [{name: app}]"), "request"),
		"request by a path":                    object(request("podName: ../$OTHER/request, containers: [{name: app}]"), "spec.podName"),
		"request with a unicode name":          object(request(`podName: "\u202ereq\u0000uest", containers: [{name: app}]`), "spec.podName"),
		"request of 5,000 containers":          object(request("podName: x, containers: ["+strings.Repeat("{name: a},", 5000)+"]"), "spec.containers"),
		"marker for all pods":                  object(marker("", "exec: {command: [sh, -c, 'while :; do echo x; done']}, periodSeconds: 1, timeoutSeconds: 1")),
		"marker with a long period":            object(marker("matchLabels: {a: b}", "exec: {command: [x]}, periodSeconds: 2147483647")),
		"marker for another host":              object(marker("matchLabels: {a: b}", "httpGet: {host: 169.254.169.254, port: 80}"), "host"),
		"marker that sets reserved labels":     object(strings.Replace(marker("matchLabels: {a: b}", "exec: {command: [x]}"), "name: p,", "name: p, markerPolicy: [{state: Succeeded, labels: {kubernetes.io/hostname: x}}],", 1), "reserved"),
		"marker for a condition of kubelet":    object(strings.Replace(marker("matchLabels: {a: b}", "exec: {command: [x]}"), "example.com/p", "Ready", 1), "podConditionType"),
		"rollout of everything":                object(rollout("selector: {}, containers: [{name: '*'}], maxUnavailable: 100%")),
		"rollout of a workload of the other":   object(rollout("targetRef: {apiVersion: apps/v1, kind: Deployment, name: ../$OTHER/web}, containers: [{name: app}]")),
		"rollout with a large number":          object(rollout("selector: {matchLabels: {a: b}}, containers: [{name: app}], maxUnavailable: 99999999999999999999%"), "maxUnavailable"),
		"rollout with a deep selector":         object(rollout("selector: {matchExpressions: [" + strings.Repeat("{key: a, operator: In, values: [b]},", 2000) + "]}, containers: [{name: app}]")),
		"schedule for the 30th of February":    object("{apiVersion: refit.dev/v1alpha1, kind: RestartSchedule, spec: {schedule: '0 0 30 2 *', rolloutTemplate: {spec: {selector: {matchLabels: {a: b}}, containers: [{name: app}]}}}}", "spec.schedule"),
		"schedule with a strange time zone":    object("{apiVersion: refit.dev/v1alpha1, kind: RestartSchedule, spec: {schedule: '* * * * *', timeZone: ../../etc/passwd, rolloutTemplate: {spec: {selector: {matchLabels: {a: b}}, containers: [{name: app}]}}}}", "timeZone"),
		"pull of the other's image, quickly":   object(job("image: $IMAGE, imagePullPolicy: Always, pullPolicy: {timeoutSeconds: 1, backoffLimit: 0}")),
		"pull of a registry that is not there": object(job("image: " + nothing + ":1, pullPolicy: {timeoutSeconds: 600, backoffLimit: 100}")),
		"pull with 64 secrets":                 object(job("image: $IMAGE, pullSecrets: [" + secrets(64) + "]")),
		"pull of a unicode image":              object(job(`image: "\u202e.io/a:1"`), "image"),
		"pull of a node's own address":         object(job("image: 169.254.169.254/latest:meta-data")),
		"list of many images":                  object("{apiVersion: apps.kruise.io/v1beta1, kind: ImageListPullJob, spec: {images: [$LIST], completionPolicy: {type: Never}}}"),
		"list with a long name":                object("{apiVersion: apps.kruise.io/v1beta1, kind: ImageListPullJob, metadata: {name: " + strings.Repeat("a.", 120) + "a-$ROUND}, spec: {images: [" + nothing + ":1], completionPolicy: {type: Never}}}"),
		"budget that allows nothing":           object("{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {maxUnavailable: 0, selector: {matchLabels: {sidecarset: hostile}}}}"),
	}
}

// attacksByAccess are writes that the role edit does not allow, or that a policy refuses.
func attacksByAccess() map[string]attack {
	return map[string]attack{
		"a SidecarSet":                   object("{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {name: evil}, spec: {selector: {}, containers: [{name: evil, image: evil}]}}", "cannot create"),
		"a NodeImage":                    object("{apiVersion: apps.kruise.io/v1beta1, kind: NodeImage, metadata: {name: evil}}", "cannot create"),
		"a NodePodProbe":                 object("{apiVersion: apps.kruise.io/v1alpha1, kind: NodePodProbe, metadata: {name: evil}}", "cannot create"),
		"a RestartTrigger":               object("{apiVersion: refit.dev/v1alpha1, kind: RestartTrigger, metadata: {name: deployment-web}, spec: {}}", "cannot create"),
		"a request in another namespace": object("{apiVersion: apps.kruise.io/v1beta1, kind: ContainerRecreateRequest, metadata: {namespace: $OTHER}, spec: {podName: request, containers: [{name: app}]}}", "cannot create"),
		"a pull secret of others":        object("{apiVersion: v1, kind: Secret, metadata: {namespace: kruise-daemon-config}}", "cannot create"),
		"a version of a DaemonSet":       object("{apiVersion: apps/v1, kind: ControllerRevision, metadata: {namespace: refit-system}, revision: 9}", "cannot create"),
		"status of its own pod": {words: []string{"cannot patch"}, do: func(ctx context.Context, a attacker) error {
			pod := a.pod()
			if err := a.Create(ctx, pod); err != nil {
				return err
			}
			return a.Status().Patch(ctx, pod, merge(`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`))
		}},
	}
}

func secrets(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprint("s-", i))
	}
	return strings.Join(list, ", ")
}

// images are n images of repositories that do not exist.
func images(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("'%s-%d:1'", nothing, i))
	}
	return strings.Join(list, ", ")
}

package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// refused creates a request as a user does and checks that the error names the field and says the words.
func (s *fixture) refused(r *request, field string, words ...string) {
	s.t.Helper()
	r.APIVersion, r.Kind = "apps.kruise.io/v1beta1", "ContainerRecreateRequest"
	manifest, err := yaml.Marshal(r)
	s.check(err, "write manifest")
	s.refusedManifest(string(manifest), field, words...)
}

func (s *fixture) refusedManifest(manifest, field string, words ...string) {
	s.t.Helper()
	out, err := s.kubectl(s.t.Context(), manifest, "--namespace", s.namespace, "create", "-f", "-")
	if err == nil {
		s.t.Errorf("admitted: %s", out)
		return
	}
	if !containsAll(out, append(words, field)) {
		s.t.Errorf("kubectl create says %.2000q, want the field %s and %q", out, field, words)
	}
}

// TestAdmissionMessages breaks each rule once. What breaks it is written as a user would: the lines of spec.
func TestAdmissionMessages(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	setup := shell("setup", "exit 0")
	pod := s.podOf("web", shell("app", obedient))
	pod.Spec.InitContainers = []corev1.Container{setup}
	s.start(pod)
	waiting := s.podOf("waiting", shell("app", obedient))
	waiting.Spec.NodeSelector = map[string]string{"no-such": "label"}
	s.check(s.Create(t.Context(), waiting), "make pod waiting")
	ended := s.podOf("ended", shell("app", "exit 0"))
	ended.Spec.RestartPolicy = corev1.RestartPolicyNever
	s.check(s.Create(t.Context(), ended), "make pod ended")
	s.awaitPod("ended", "to end", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded })
	const app = "containers: [{name: app}]"
	for name, tc := range map[string]struct {
		metadata, spec string
		field          string
		words          []string
	}{
		"no pod name":         {spec: "{podName: '', " + app + "}", field: "spec.podName", words: []string{"can not be empty"}},
		"a path as pod name":  {spec: "{podName: ../web, " + app + "}", field: "spec.podName", words: []string{"../web"}},
		"no containers":       {spec: "{podName: web, containers: []}", field: "spec.containers", words: []string{"can not be null"}},
		"a container twice":   {spec: "{podName: web, containers: [{name: app}, {name: app}]}", field: "spec.containers[1].name", words: []string{"multi times"}},
		"nameless container":  {spec: "{podName: web, containers: [{name: ''}]}", field: "spec.containers[0].name"},
		"deadline below 3":    {spec: "{podName: web, " + app + ", activeDeadlineSeconds: 2}", field: "spec.activeDeadlineSeconds", words: []string{"3s"}},
		"endless deadline":    {spec: "{podName: web, " + app + ", activeDeadlineSeconds: 4611686018427387904}", field: "spec.activeDeadlineSeconds"},
		"negative TTL":        {spec: "{podName: web, " + app + ", ttlSecondsAfterFinished: -1}", field: "spec.ttlSecondsAfterFinished"},
		"negative grace":      {spec: "{podName: web, " + app + ", strategy: {terminationGracePeriodSeconds: -1}}", field: "spec.strategy.terminationGracePeriodSeconds"},
		"negative drain":      {spec: "{podName: web, " + app + ", strategy: {unreadyGracePeriodSeconds: -1}}", field: "spec.strategy.unreadyGracePeriodSeconds"},
		"negative minimum":    {spec: "{podName: web, " + app + ", strategy: {minStartedSeconds: -1}}", field: "spec.strategy.minStartedSeconds"},
		"failure policy":      {spec: "{podName: web, " + app + ", strategy: {failurePolicy: Retry}}", field: "spec.strategy.failurePolicy", words: []string{"Retry", "Fail or Ignore"}},
		"no such pod":         {spec: "{podName: db, " + app + "}", field: "spec.podName", words: []string{"no found Pod named db in namespace " + s.namespace}},
		"unscheduled pod":     {spec: "{podName: waiting, " + app + "}", field: "spec.podName", words: []string{"pending Pod"}},
		"ended pod":           {spec: "{podName: ended, " + app + "}", field: "spec.podName", words: []string{"inactive Pod", "Succeeded"}},
		"unknown container":   {spec: "{podName: web, containers: [{name: app}, {name: db}]}", field: "spec.containers[1].name", words: []string{"container db not found in Pod web, which has app"}},
		"read-only context":   {spec: "{podName: web, containers: [{name: app, statusContext: {containerID: 'containerd://1', restartCount: 0}}]}", field: "spec.containers[0].statusContext", words: []string{"read-only"}},
		"read-only hook":      {spec: "{podName: web, containers: [{name: app, preStop: {exec: {command: [reboot]}}}]}", field: "spec.containers[0].preStop", words: []string{"read-only"}},
		"read-only ports":     {spec: "{podName: web, containers: [{name: app, ports: [{containerPort: 80}]}]}", field: "spec.containers[0].ports", words: []string{"read-only"}},
		"back-off annotation": {metadata: "annotations: {refit.dev/restart-backoff: never}", field: "metadata.annotations[refit.dev/restart-backoff]", words: []string{"never", "respect or skip"}},
		"policy annotation":   {metadata: "annotations: {refit.dev/restart-policy: Always}", field: "metadata.annotations[refit.dev/restart-policy]", words: []string{"override"}},
		"forged pod UID":      {metadata: "labels: {crr.apps.kruise.io/pod-uid: another}", field: "metadata.labels[crr.apps.kruise.io/pod-uid]", words: []string{string(pod.UID), "remove it"}},
		"forged node":         {metadata: "labels: {crr.apps.kruise.io/node-name: another}", field: "metadata.labels[crr.apps.kruise.io/node-name]", words: []string{"remove it"}},
		"born inactive":       {metadata: "labels: {crr.apps.kruise.io/active: 'false'}", field: "metadata.labels[crr.apps.kruise.io/active]", words: []string{"remove it"}},
		"unknown field":       {spec: "{podName: web, " + app + ", deadline: 5}", field: "spec.deadline", words: []string{"unknown field"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.spec == "" {
				tc.spec = "{podName: web, " + app + "}"
			}
			for _, version := range []string{"v1beta1", "v1alpha1"} {
				sub := &fixture{cluster: s.cluster, t: t, namespace: s.namespace}
				manifest := fmt.Sprintf("apiVersion: apps.kruise.io/%s\nkind: ContainerRecreateRequest\nmetadata: {name: r, %s}\nspec: %s\n", version, tc.metadata, tc.spec)
				sub.refusedManifest(manifest, tc.field, tc.words...)
			}
		})
	}
}

// TestUpdatesThatAreRefused patches what may not be changed once the request is made.
func TestUpdatesThatAreRefused(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	pod := s.podOf("web", shell("app", stubborn))
	pod.Spec.TerminationGracePeriodSeconds = new(int64(600))
	s.start(pod)
	s.ask("r", "web/app")
	for name, tc := range map[string]struct{ patch, field string }{
		"another pod":         {`{"spec":{"podName":"db"}}`, "spec"},
		"another deadline":    {`{"spec":{"activeDeadlineSeconds":99}}`, "spec"},
		"another container":   {`{"spec":{"containers":[{"name":"db"}]}}`, "spec"},
		"pod UID":             {`{"metadata":{"labels":{"crr.apps.kruise.io/pod-uid":"x"}}}`, "crr.apps.kruise.io/pod-uid"},
		"node":                {`{"metadata":{"labels":{"crr.apps.kruise.io/node-name":"x"}}}`, "crr.apps.kruise.io/node-name"},
		"active":              {`{"metadata":{"labels":{"crr.apps.kruise.io/active":null}}}`, "crr.apps.kruise.io/active"},
		"place in the queue":  {`{"metadata":{"annotations":{"refit.dev/admitted-at":"2000-01-01T00:00:00Z"}}}`, "refit.dev/admitted-at"},
		"override afterwards": {`{"metadata":{"annotations":{"refit.dev/restart-policy":"override"}}}`, "refit.dev/restart-policy"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := s.kubectl(t.Context(), "", "--namespace", s.namespace, "patch", "crr", "r", "--type=merge", "--patch", tc.patch)
			if err == nil || !strings.Contains(out, tc.field) {
				t.Errorf("kubectl patch says %q, %v; want a refusal that names %s", out, err, tc.field)
			}
		})
	}
	s.run("label", "crr", "r", "team=a")
}

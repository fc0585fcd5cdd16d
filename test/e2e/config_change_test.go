package e2e_test

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
)

// showsSettings writes the setting that it finds in its file and in its environment when it starts.
const showsSettings = `echo "file $(cat /settings/color) environment $color"; ` + obedient

// configured makes a Deployment whose container app has the ConfigMap settings in a volume and in its environment.
func (s *fixture) configured(replicas int, annotations map[string]string) []corev1.Pod {
	s.t.Helper()
	s.run("create", "configmap", "settings", "--from-literal=color=blue")
	app := shell("app", showsSettings)
	app.VolumeMounts = append(app.VolumeMounts, corev1.VolumeMount{Name: "settings", MountPath: "/settings"})
	settings := corev1.LocalObjectReference{Name: "settings"}
	app.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: settings}}}
	pod := s.podOf("web", app, shell("log", obedient))
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: settings}}})
	return s.deploymentOf(pod, replicas, annotations)
}

// trigger is what refit-manager has recorded of Deployment web; nil if it has recorded nothing.
func (s *fixture) trigger(ctx context.Context) (*refitv1alpha1.RestartTrigger, error) {
	var found refitv1alpha1.RestartTrigger
	err := s.Get(ctx, s.key("deployment-web"), &found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return &found, err
}

func (s *fixture) awaitTrigger(what string, done func(*refitv1alpha1.RestartTrigger) bool) {
	s.t.Helper()
	s.await("the trigger "+what, func(ctx context.Context) (bool, error) {
		found, err := s.trigger(ctx)
		return found != nil && done(found), err
	})
}

// A window that is closed holds the restart; a restart that needs approval begins when it is resumed.
func TestAChangedConfigMapWaitsForItsWindowAndForApproval(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	closed := time.Now().Add(12 * time.Hour).UTC().Format("4 15 * * *")
	before := s.configured(2, map[string]string{
		refitv1alpha1.AnnotationRestartOnConfigChange: "app", refitv1alpha1.AnnotationRestartPaused: "true",
		refitv1alpha1.AnnotationRestartWindow: closed, refitv1alpha1.AnnotationRestartWindowDuration: "1h",
	})
	s.awaitTrigger("knows the ConfigMap", func(o *refitv1alpha1.RestartTrigger) bool { return len(o.Status.Objects) == 1 })
	s.run("patch", "configmap", "settings", "--type=merge", `--patch={"data":{"color":"green"}}`)
	s.awaitTrigger("waits for its window", func(o *refitv1alpha1.RestartTrigger) bool {
		c := meta.FindStatusCondition(o.Status.Conditions, refitv1alpha1.ConditionReady)
		return c != nil && strings.Contains(c.Message, "waiting for the window that begins at")
	})
	if n := len(s.rollouts(t.Context())); n != 0 {
		t.Errorf("%d rollouts outside of the window", n)
	}
	s.run("annotate", "deployment", "web", refitv1alpha1.AnnotationRestartWindow+"-", refitv1alpha1.AnnotationRestartWindowDuration+"-")
	s.awaitRollout("is paused", func(o *refitv1alpha1.RestartRollout) bool {
		c := meta.FindStatusCondition(o.Status.Conditions, refitv1alpha1.ConditionProgressing)
		return o.Spec.Paused && c != nil && c.Reason == refitv1alpha1.ReasonPaused
	})
	s.awaitEvent("ConfigChanged", "it waits for kubectl refit rollout resume restartrollout/web-")
	for i := range before {
		s.untouched(&before[i], "app")
	}
	s.shown([]string{"rollout", "resume", "restartrollout/" + s.rollouts(t.Context())[0].Name}, "resumed")
	s.awaitRollout("succeeds", func(o *refitv1alpha1.RestartRollout) bool {
		return meta.IsStatusConditionTrue(o.Status.Conditions, refitv1alpha1.ConditionSucceeded)
	})
	for i := range before {
		s.restarted(&before[i], "app", 1)
		s.untouched(&before[i], "log")
	}
}

func TestChangedConfigMapRestartsTheContainersThatUseIt(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.configured(3, map[string]string{refitv1alpha1.AnnotationRestartOnConfigChange: "app", refitv1alpha1.AnnotationRestartMaxUnavailable: "2"})
	s.awaitTrigger("knows the ConfigMap", func(o *refitv1alpha1.RestartTrigger) bool { return len(o.Status.Objects) == 1 })
	stop := s.unavailable("web")
	for _, color := range []string{"green", "red"} { // two changes, one restart
		s.run("patch", "configmap", "settings", "--type=merge", `--patch={"data":{"color":"`+color+`"}}`)
	}
	s.awaitRollout("succeeds", func(o *refitv1alpha1.RestartRollout) bool {
		return meta.IsStatusConditionTrue(o.Status.Conditions, refitv1alpha1.ConditionSucceeded)
	})
	if most := stop(); most > 2 {
		t.Errorf("%d pods were not ready at a time", most)
	}
	for i := range before {
		s.restarted(&before[i], "app", 1)
		s.untouched(&before[i], "log")
		s.await("log of "+before[i].Name, s.says(before[i].Name, "app", "file red environment red"))
	}
	s.awaitEvent("ConfigChanged", "ConfigMap settings has changed")
	s.shown([]string{"status"}, "restartrollout/web-", "ConfigMap/settings", "restarttrigger/deployment-web")
	s.shown([]string{"why", before[0].Name}, "ConfigMap settings has changed")

	s.run("label", "configmap", "settings", "only=metadata")
	var settings corev1.ConfigMap
	s.check(s.Get(t.Context(), s.key("settings"), &settings), "get ConfigMap")
	s.awaitTrigger("has looked at the label", func(o *refitv1alpha1.RestartTrigger) bool {
		return o.Status.Objects[0].ResourceVersion == settings.ResourceVersion
	})
	if n := len(s.rollouts(t.Context())); n != 1 {
		t.Errorf("%d rollouts after a label was changed", n)
	}
	s.run("annotate", "deployment", "web", refitv1alpha1.AnnotationRestartOnConfigChange+"-")
	s.await("the trigger to be deleted", func(ctx context.Context) (bool, error) {
		found, err := s.trigger(ctx)
		return found == nil, err
	})
}

func TestWrongContainerInTheAnnotationIsReported(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.configured(1, map[string]string{refitv1alpha1.AnnotationRestartOnConfigChange: "nope"})
	s.awaitEvent("InvalidAnnotation", refitv1alpha1.AnnotationRestartOnConfigChange, `no container "nope"`)
	s.awaitTrigger("is not ready", func(o *refitv1alpha1.RestartTrigger) bool {
		return meta.IsStatusConditionFalse(o.Status.Conditions, refitv1alpha1.ConditionReady)
	})
}

func TestScheduleRestartsADeployment(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	before := s.deployment("web", 2)
	schedule := &refitv1alpha1.RestartSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "yearly"}}
	schedule.Spec.Schedule, schedule.Spec.TimeZone, schedule.Spec.Suspend = "0 3 1 1 *", "Europe/Paris", true
	schedule.Spec.RolloutTemplate.Spec = refitv1alpha1.RestartRolloutSpec{
		TargetRef: &refitv1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, Containers: refitv1alpha1.RolloutContainers("app"),
	}
	s.check(s.Create(t.Context(), schedule), "make RestartSchedule")
	// It is due, as if no manager had run since the time before last.
	s.run("patch", "restartschedule", "yearly", "--subresource=status", "--type=merge", `--patch={"status":{"lastScheduleTime":"2020-01-01T02:00:00Z"}}`)
	s.run("patch", "restartschedule", "yearly", "--type=merge", `--patch={"spec":{"suspend":false}}`)
	s.awaitRollout("succeeds", func(o *refitv1alpha1.RestartRollout) bool {
		return meta.IsStatusConditionTrue(o.Status.Conditions, refitv1alpha1.ConditionSucceeded)
	})
	for i := range before {
		s.restarted(&before[i], "app", 1)
	}
	s.await("the schedule to know of it", func(ctx context.Context) (bool, error) {
		err := s.Get(ctx, s.key("yearly"), schedule)
		return err == nil && len(schedule.Status.Active) == 0 && schedule.Status.LastSuccessfulTime != nil && schedule.Status.LastScheduleTime.Year() > 2020, err
	})
	s.shown([]string{"status"}, "restartrollout/yearly-", "RestartSchedule/yearly", "restartschedule/yearly", "Scheduled", " Succeeded")
	if n := len(s.rollouts(t.Context())); n != 1 {
		t.Errorf("%d rollouts", n)
	}
	s.check(s.Delete(t.Context(), schedule), "delete RestartSchedule")
	s.await("its rollout to be deleted", func(ctx context.Context) (bool, error) { return len(s.rollouts(ctx)) == 0, nil })
}

func TestWrongSchedulesAreRefusedWithTheField(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	for field, line := range map[string]string{
		"spec.schedule":                           `{"schedule": "0 25 * * *", "rolloutTemplate": {"spec": {"selector": {"matchLabels": {"a": b}}, "containers": [{"name": app}]}}}`,
		"spec.timeZone":                           `{"schedule": "0 3 * * *", "timeZone": "Europe/Atlantis", "rolloutTemplate": {"spec": {"selector": {"matchLabels": {"a": b}}, "containers": [{"name": app}]}}}`,
		"spec.rolloutTemplate.spec.containers":    `{"schedule": "0 3 * * *", "rolloutTemplate": {"spec": {"selector": {"matchLabels": {"a": b}}, "containers": []}}}`,
		"exactly one of targetRef and selector":   `{"schedule": "0 3 * * *", "rolloutTemplate": {"spec": {"containers": [{"name": app}]}}}`,
		"spec.concurrencyPolicy: Unsupported val": `{"schedule": "0 3 * * *", "concurrencyPolicy": Allow, "rolloutTemplate": {"spec": {"selector": {"matchLabels": {"a": b}}, "containers": [{"name": app}]}}}`,
	} {
		s.refusedManifest("apiVersion: refit.dev/v1alpha1\nkind: RestartSchedule\nmetadata: {name: wrong}\nspec: "+line+"\n", field)
	}
}

// TestGateHoldsEveryContainerUntilAllHaveStopped is about kubelet: a container whose environment needs a key of a ConfigMap
// that is not there is not started. So the containers of a group can be kept from starting until the last has stopped.
func TestGateHoldsEveryContainerUntilAllHaveStopped(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	const open, shut = `--patch={"data":{"open":"true"}}`, `--patch={"data":{"open":null}}`
	s.run("create", "configmap", "gate", "--from-literal=open=true")
	app := shell("app", obedient)
	app.Env = []corev1.EnvVar{{Name: "GATE", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "gate"}, Key: "open",
	}}}}
	before := s.deploymentOf(s.podOf("web", app), 4, nil)

	s.run("patch", "configmap", "gate", "--type=merge", shut)
	if out, code := s.restart("deployment/web", "-c", "app", "--max-unavailable=100%", "--wait=false"); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	pods := func(ctx context.Context) []corev1.Pod {
		var list corev1.PodList
		s.check(s.List(ctx, &list, client.InNamespace(s.namespace)), "list pods")
		return list.Items
	}
	s.await("all containers to be held", func(ctx context.Context) (bool, error) {
		held := 0
		for _, pod := range pods(ctx) {
			if w := status(&pod, "app").State.Waiting; w != nil && w.Reason == "CreateContainerConfigError" {
				held++
			}
		}
		return held == len(before), nil
	})
	opened := time.Now()
	s.run("patch", "configmap", "gate", "--type=merge", open)
	s.run("annotate", "pods", "--all", "opened=1") // kubelet tries again now
	s.awaitRollout("succeeds", func(o *refitv1alpha1.RestartRollout) bool {
		return meta.IsStatusConditionTrue(o.Status.Conditions, refitv1alpha1.ConditionSucceeded)
	})
	var stopped, first, last metav1.Time
	for _, pod := range pods(t.Context()) {
		is := status(&pod, "app")
		if started := is.State.Running.StartedAt; first.IsZero() || started.Before(&first) {
			first = started
		}
		if started := is.State.Running.StartedAt; last.Before(&started) {
			last = started
		}
		if ended := is.LastTerminationState.Terminated; ended != nil && stopped.Before(&ended.FinishedAt) {
			stopped = ended.FinishedAt
		}
	}
	if first.Before(&stopped) {
		t.Errorf("a container was started at %s, before the last had stopped at %s", first, stopped)
	}
	s.observed("gate of %d pods: last stop %s, opened %s, first start %s, last start %s", len(before),
		stopped.UTC().Format(time.TimeOnly), opened.UTC().Format(time.TimeOnly), first.UTC().Format(time.TimeOnly), last.UTC().Format(time.TimeOnly))
}

// deploymentOf makes Deployment web of such pods and waits until they are ready.
func (s *fixture) deploymentOf(pod *corev1.Pod, replicas int, annotations map[string]string) []corev1.Pod {
	s.t.Helper()
	name := pod.Name
	object := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name, Annotations: annotations}}
	object.Spec.Replicas = new(int32(replicas))
	object.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	object.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}}, Spec: pod.Spec}
	s.check(s.Create(s.t.Context(), object), "make deployment %s", name)
	var list corev1.PodList
	s.await("pods of deployment "+name, func(ctx context.Context) (bool, error) {
		if err := s.List(ctx, &list, client.InNamespace(s.namespace), client.MatchingLabels{"app": name}); err != nil {
			return false, err
		}
		ready := 0
		for i := range list.Items {
			if condition(&list.Items[i], corev1.PodReady) == corev1.ConditionTrue {
				ready++
			}
		}
		return ready == replicas, nil
	})
	return list.Items
}

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

// byPolicy is in the refusals of admission policies.
const byPolicy = "ValidatingAdmissionPolicy"

// attacksByDaemon are made with the token of the refit-daemon of the victim's node, and of one on no node.
func attacksByDaemon() map[string]attack {
	daemon := func(t stolen) client.Client { return t.daemon }
	noDaemon := func(t stolen) client.Client { return t.noDaemon }
	const nudge = `{"metadata":{"annotations":{"refit.dev/nudge":"now"}}}`
	imageOf := func(patch string, program func(stolen) client.Client) func(context.Context, attacker) error {
		return func(ctx context.Context, a attacker) error {
			return program(a.stolen).Status().Patch(ctx, a.nodeImage(), merge(patch))
		}
	}
	return map[string]attack{
		"daemon, a pod and its request": {do: daemonWritesAboutPod},
		"daemon, its NodeImage": {do: func(ctx context.Context, a attacker) error {
			tag := map[string]any{"tag": "1", "phase": "Pulling", "progress": 100, "startTime": "9999-12-31T23:59:59Z", "imageID": hostileText(50), "message": hostileText(1 << 10)}
			text, err := json.Marshal(map[string]any{"status": map[string]any{"imageStatuses": map[string]any{nothing + "-stolen": map[string]any{"tags": []any{tag}}}}})
			if err != nil {
				return err
			}
			wrote := a.takes(ctx, "status of the NodeImage", func(ctx context.Context) error { return imageOf(string(text), daemon)(ctx, a) })
			return errors.Join(wrote, imageOf(`{"status":{"imageStatuses":{"`+nothing+`-stolen":null}}}`, daemon)(ctx, a))
		}},
		"daemon, an Event": {do: func(ctx context.Context, a attacker) error {
			pod := a.pod()
			pod.Name = "none"
			return a.takes(ctx, "an Event", func(ctx context.Context) error {
				return a.stolen.daemon.Create(ctx, aboutPod(pod, a.victim.Spec.NodeName))
			})
		}},
		"daemon, an Event of another node": refused(func(ctx context.Context, a attacker) error {
			return a.stolen.daemon.Create(ctx, aboutPod(a.victim, "no-such-node"))
		}, byPolicy, "in the name of node"),
		"daemon, labels of the other":             statusOfVictim(daemon, `{"metadata":{"labels":{"app":"evil"}}}`, byPolicy, "nothing of a pod but"),
		"daemon, status of the other":             statusOfVictim(daemon, `{"status":{"phase":"Failed"}}`, byPolicy, "nothing of a pod but"),
		"daemon, spec of the other":               victimItself(daemon, `{"spec":{"activeDeadlineSeconds":1}}`, "cannot patch"),
		"daemon, deletion of the other":           deletesVictim(daemon),
		"daemon, a pod of the other":              createsPod(daemon),
		"daemon, secrets of the other":            listsSecrets(daemon, ofTheOther),
		"daemon, secrets of Refit":                listsSecrets(daemon, ofTheSystem),
		"daemon of no node, nudge of the other":   statusOfVictim(noDaemon, nudge, byPolicy),
		"daemon of no node, status of NodeImages": refused(imageOf(`{"status":{"desired":1}}`, noDaemon), byPolicy),
		"daemon, what its node pulls": refused(func(ctx context.Context, a attacker) error {
			return a.stolen.daemon.Patch(ctx, a.nodeImage(), merge(`{"spec":{"images":{}}}`))
		}, "cannot patch"),
		"daemon, a request for the other": refused(func(ctx context.Context, a attacker) error {
			return a.stolen.daemon.Create(ctx, (&fixture{namespace: a.other}).newRequest("stolen", "victim/app"))
		}, "cannot create"),
		"daemon, a token of another one": refused(func(ctx context.Context, a attacker) error {
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "refit-daemon"}}
			return a.stolen.daemon.SubResource("token").Create(ctx, account, &authenticationv1.TokenRequest{})
		}, "cannot create"),
	}
}

// daemonWritesAboutPod writes the two annotations of a pod on its node, and the status of a request for it, while the real daemon does.
func daemonWritesAboutPod(ctx context.Context, a attacker) error {
	pod, err := a.runs(ctx, plain)
	if err != nil {
		return fmt.Errorf("start a pod: %w", err)
	}
	defer a.removes(ctx, pod)
	r := (&fixture{namespace: a.own}).newRequest("", pod.Name+"/app")
	r.GenerateName = "a-"
	if err := a.Create(ctx, r); err != nil {
		return fmt.Errorf("create request: %w", err)
	}
	for _, text := range []string{hostileText(50 << 10), `{"containers":[{"name":"app","hashes":{"plainHash":18446744073709551616}}]}`, "9999-12-31T23:59:59Z", ""} {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"refit.dev/nudge": text, v1beta1.AnnotationRuntimeContainersMeta: text}}})
		if err != nil {
			return err
		}
		err = a.takes(ctx, "annotations of a pod", func(ctx context.Context) error {
			return a.stolen.daemon.Status().Patch(ctx, pod.DeepCopy(), merge(string(patch)))
		})
		if err != nil {
			return err
		}
	}
	return a.takes(ctx, "status of a request", func(ctx context.Context) error {
		return a.stolen.daemon.Status().Patch(ctx, r.DeepCopy(), merge(`{"status":{"message":"\u202e\ud83d\udca3{{{","completionTime":"9999-12-31T23:59:59Z"}}`))
	})
}

// attacksByManager are made with the token of refit-manager.
func attacksByManager() map[string]attack {
	manager := func(t stolen) client.Client { return t.manager }
	return map[string]attack{
		"manager, status of a pod": {do: func(ctx context.Context, a attacker) error {
			pod := a.pod()
			if err := a.Create(ctx, pod); err != nil {
				return err
			}
			text, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"example.com/x": hostileText(100 << 10)}}})
			if err != nil {
				return err
			}
			for _, patch := range []client.Patch{merge(string(text)), strategic(farAway("example.com/x")), strategic(farAway(v1beta1.ReadinessGateKruisePodReady))} {
				if err := a.takes(ctx, "status of a pod", func(ctx context.Context) error { return a.stolen.manager.Status().Patch(ctx, pod.DeepCopy(), patch) }); err != nil {
					return err
				}
			}
			return nil
		}},
		"manager, status of a rollout": {do: managerWritesRollout},
		"manager, phase of the other":  statusOfVictim(manager, `{"status":{"phase":"Failed"}}`, byPolicy, "nothing of a pod's status but conditions"),
		"manager, address of the other": statusOfVictim(manager, `{"status":{"podIP":"10.9.9.9","podIPs":[{"ip":"10.9.9.9"}]}}`,
			byPolicy, "nothing of a pod's status but conditions"),
		"manager, containers of the other":        statusOfVictim(manager, `{"status":{"containerStatuses":null}}`, byPolicy, "nothing of a pod's status but conditions"),
		"manager, reserved labels of the other":   statusOfVictim(manager, `{"metadata":{"labels":{"pod-template-hash":"x"}}}`, byPolicy, "reserved"),
		"manager, an annotation of refit-daemon":  statusOfVictim(manager, `{"metadata":{"annotations":{"refit.dev/nudge":"x"}}}`, byPolicy, "reserved"),
		"manager, finalizers of the other":        statusOfVictim(manager, `{"metadata":{"finalizers":["a.b/c"]}}`, byPolicy),
		"manager, spec of the other":              victimItself(manager, `{"spec":{"activeDeadlineSeconds":1}}`, byPolicy, "nothing of a pod's spec but"),
		"manager, deletion of the other":          deletesVictim(manager),
		"manager, a pod of the other":             createsPod(manager),
		"manager, secrets of the other":           listsSecrets(manager, ofTheOther),
		"manager, secrets of Refit":               listsSecrets(manager, ofTheSystem),
		"manager, its certificate":                refused(writesSecret(manager, systemNamespace, "refit-manager-webhook-cert"), "cannot patch"),
		"manager, the webhooks":                   refused(writesWebhooks(manager), "cannot patch"),
		"manager, a revision of refit-daemon":     refused(writesRevision(manager), byPolicy, "SidecarSets"),
		"manager, the workload of the other":      refused(writesTemplate(manager), byPolicy, "workloads that are held"),
		"manager, an image of the other's victim": refused(writesImage(manager), byPolicy),
	}
}

// managerWritesRollout writes numbers and times into the status of a rollout, while the real manager does.
func managerWritesRollout(ctx context.Context, a attacker) error {
	rollout, err := a.parse("{apiVersion: refit.dev/v1alpha1, kind: RestartRollout, spec: {selector: {matchLabels: {a: b}}, containers: [{name: app}], paused: true}}")
	if err != nil {
		return err
	}
	if err := a.Create(ctx, rollout); err != nil {
		return fmt.Errorf("create RestartRollout: %w", err)
	}
	return a.takes(ctx, "status of a rollout", func(ctx context.Context) error {
		return until(ctx, attackPatience, func(ctx context.Context) (bool, error) {
			is := &v1alpha1.RestartRollout{}
			if err := a.stolen.manager.Get(ctx, client.ObjectKeyFromObject(rollout), is); err != nil {
				return false, err
			}
			is.Status.MatchedPods, is.Status.FailedPods, is.Status.UnavailablePods = 2147483647, 2147483647, -2147483648
			err := a.stolen.manager.Status().Update(ctx, is)
			if apierrors.IsConflict(err) {
				return false, nil
			}
			return err == nil, err
		})
	})
}

func writesSecret(program func(stolen) client.Client, namespace, name string) func(context.Context, attacker) error {
	return func(ctx context.Context, a attacker) error {
		return program(a.stolen).Patch(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, merge(`{"data":{"a":""}}`))
	}
}

func writesWebhooks(program func(stolen) client.Client) func(context.Context, attacker) error {
	return func(ctx context.Context, a attacker) error {
		webhooks := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "refit-manager"}}
		return program(a.stolen).Patch(ctx, webhooks, merge(`{"metadata":{"labels":{"a":"b"}}}`))
	}
}

func writesRevision(program func(stolen) client.Client) func(context.Context, attacker) error {
	return func(ctx context.Context, a attacker) error {
		made := &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte(`{"spec":{}}`)}, Revision: 1000}
		made.Namespace, made.Name, made.Labels = systemNamespace, "refit-daemon-1", map[string]string{v1beta1.LabelSidecarSetName: "refit-daemon"}
		made.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "refit-daemon", UID: "u", Controller: new(true)}}
		return program(a.stolen).Create(ctx, made, client.DryRunAll)
	}
}

func writesTemplate(program func(stolen) client.Client) func(context.Context, attacker) error {
	return func(ctx context.Context, a attacker) error {
		workload := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: a.other, Name: "bystander"}}
		return program(a.stolen).Patch(ctx, workload, merge(`{"spec":{"template":{"metadata":{"annotations":{"example.com/own":"2"}}}}}`))
	}
}

func writesImage(program func(stolen) client.Client) func(context.Context, attacker) error {
	return func(ctx context.Context, a attacker) error {
		return program(a.stolen).Patch(ctx, a.victim.DeepCopy(), strategic(`{"spec":{"containers":[{"name":"app","image":"evil"}]}}`))
	}
}

package e2e_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// few is how much is written of a flood of n.
func (a attacker) few(n int) int { return max(n/max(a.share, 1), 1) }

// most is how much is written of a flood of what is cheap to write: manyThings in the long run, as few of n otherwise.
func (a attacker) most(n int) int {
	if a.share == 1 {
		return manyThings
	}
	return a.few(n)
}

// flood creates an object n times, or fewer in the short run.
func flood(n int, manifest string) attack {
	return floodOf(manifest, func(a attacker) int { return a.few(n) })
}

// cheap is a flood of manyThings in the long run, and of what is written of n in the short one.
func cheap(n int, manifest string) attack {
	return floodOf(manifest, func(a attacker) int { return a.most(n) })
}

func floodOf(manifest string, times func(attacker) int) attack {
	return attack{do: func(ctx context.Context, a attacker) error {
		made, err := a.parse(manifest)
		if err != nil {
			return err
		}
		for range times(a) {
			one := made.DeepCopy()
			switch err := a.answered(ctx, func(ctx context.Context) error { return a.Create(ctx, one) }); {
			case errors.Is(err, errUnanswered):
				return err
			case err != nil && !refusal(err):
				return nil // the API server is busy: the flood has done what it can
			}
		}
		return nil
	}}
}

// changes writes an object manyThings times, or as often as is written of n in the short run.
func changes(n int, manifest string) attack {
	return attack{do: func(ctx context.Context, a attacker) error {
		made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "config"}}
		if err := client.IgnoreAlreadyExists(a.Create(ctx, made.DeepCopy())); err != nil {
			return err
		}
		if err := client.IgnoreAlreadyExists(object(manifest).do(ctx, a)); err != nil {
			return err
		}
		for i := range a.most(n) {
			if err := a.Patch(ctx, made.DeepCopy(), merge(fmt.Sprintf(`{"data":{"a":"%d-%d"}}`, a.round, i))); err != nil {
				return err
			}
		}
		return nil
	}}
}

func attacksByFloods() map[string]attack {
	return map[string]attack{
		"1,000 requests for pods that are not there": cheap(200, "{apiVersion: apps.kruise.io/v1beta1, kind: ContainerRecreateRequest, spec: {podName: none, containers: [{name: a}]}}"),
		"1,000 markers for all pods":                 cheap(100, "{apiVersion: apps.kruise.io/v1alpha1, kind: PodProbeMarker, spec: {selector: {}, probes: [{name: p, containerName: app, podConditionType: example.com/p, probe: {exec: {command: [x]}}}]}}"),
		"1,000 rollouts":                             cheap(100, "{apiVersion: refit.dev/v1alpha1, kind: RestartRollout, spec: {selector: {matchLabels: {sidecarset: hostile}}, containers: [{name: app}], maxUnavailable: 100%}}"),
		"50 schedules for each minute":               flood(50, "{apiVersion: refit.dev/v1alpha1, kind: RestartSchedule, spec: {schedule: '* * * * *', rolloutTemplate: {spec: {selector: {matchLabels: {a: b}}, containers: [{name: app}]}}}}"),
		"1,000 pulls":                                cheap(100, "{apiVersion: apps.kruise.io/v1beta1, kind: ImagePullJob, spec: {image: '"+nothing+":2', completionPolicy: {type: Never}}}"),
		"60 pods of 200 kB":                          flood(60, "{apiVersion: v1, kind: Pod, metadata: {annotations: {kruise.io/sidecarset-x: $LONG}, labels: {sidecarset: hostile}}, spec: {nodeSelector: {refit.dev/no-such-node: 'true'}, containers: [{name: app, image: a}]}}"),
		"1,000 changes of a ConfigMap":               changes(100, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: changed, annotations: {refit.dev/restart-on-config-change: app}}, spec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: app, image: a, envFrom: [{configMapRef: {name: config}}]}]}}}}"),
		"1,000 ConfigMaps":                           cheap(100, "{apiVersion: v1, kind: ConfigMap, metadata: {annotations: {refit.dev/restart-on-config-change: app}}, data: {a: b}}"),
	}
}

package defaults_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/defaults"
)

func spec(t *testing.T, text string) *v1beta1.SidecarSetSpec {
	t.Helper()
	var s v1beta1.SidecarSetSpec
	if err := yaml.UnmarshalStrict([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

// What kruise-manager of OpenKruise 07169cfac stores of the same manifests.
func TestDefaultsAreOpenKruises(t *testing.T) {
	t.Parallel()
	const strategies = `
revisionHistoryLimit: 10
updateStrategy: {type: RollingUpdate, maxUnavailable: 1, partition: 0}
`
	const cold = `terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File, upgradeStrategy: {upgradeType: ColdUpgrade}, shareVolumePolicy: {type: disabled}`
	for name, tc := range map[string]struct{ written, stored string }{
		"a container": {
			`containers: [{name: log, image: log:1}]`,
			strategies + `containers: [{name: log, image: log:1, imagePullPolicy: IfNotPresent, podInjectPolicy: BeforeAppContainer, ` + cold + `}]`,
		},
		"an init container, and a native sidecar": {
			`initContainers: [{name: once, image: once}, {name: mesh, image: mesh:1, restartPolicy: Always, startupProbe: {httpGet: {port: 1}}}]`,
			strategies + `initContainers:
- {name: once, image: once, imagePullPolicy: Always, podInjectPolicy: AfterAppContainer, ` + cold + `}
- {name: mesh, image: mesh:1, restartPolicy: Always, startupProbe: {httpGet: {port: 1}}, imagePullPolicy: IfNotPresent, podInjectPolicy: AfterAppContainer, ` + cold + `}`,
		},
		"all parts of a container": {`
containers:
- name: log
  image: log:latest
  ports: [{containerPort: 80}, {containerPort: 81, protocol: UDP}]
  env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: B, value: b}, {name: C, valueFrom: {secretKeyRef: {key: k}}}]
  transferEnv: [{sourceContainerNameFrom: {fieldRef: {fieldPath: "metadata.labels['x']"}}, envName: B}, {sourceContainerName: app, envName: C}]
  resources: {limits: {cpu: "0.0001", memory: 1000m}, requests: {cpu: 1000m}}
  livenessProbe: {httpGet: {port: 80}}
  readinessProbe: {exec: {command: [a]}, timeoutSeconds: 5}
  lifecycle: {postStart: {httpGet: {port: 80}}, preStop: {httpGet: {port: 81, path: /x, scheme: HTTPS}}}`,
			strategies + `
containers:
- name: log
  image: log:latest
  ports: [{containerPort: 80, protocol: TCP}, {containerPort: 81, protocol: UDP}]
  env: [{name: A, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.name}}}, {name: B, value: b}, {name: C, valueFrom: {secretKeyRef: {key: k}}}]
  transferEnv: [{sourceContainerNameFrom: {fieldRef: {apiVersion: v1, fieldPath: "metadata.labels['x']"}}, envName: B}, {sourceContainerName: app, envName: C}]
  resources: {limits: {cpu: 1m, memory: "1"}, requests: {cpu: "1"}}
  livenessProbe: {httpGet: {port: 80, path: /, scheme: HTTP}, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3}
  readinessProbe: {exec: {command: [a]}, timeoutSeconds: 5, periodSeconds: 10, successThreshold: 1, failureThreshold: 3}
  lifecycle: {postStart: {httpGet: {port: 80, path: /, scheme: HTTP}}, preStop: {httpGet: {port: 81, path: /x, scheme: HTTPS}}}
  imagePullPolicy: Always
  podInjectPolicy: BeforeAppContainer
  terminationMessagePath: /dev/termination-log
  terminationMessagePolicy: File
  upgradeStrategy: {upgradeType: ColdUpgrade}
  shareVolumePolicy: {type: disabled}`,
		},
		"volumes": {`
volumes:
- {name: none}
- {name: host, hostPath: {path: /h}}
- {name: secret, secret: {secretName: s}}
- {name: config, configMap: {name: c}}
- {name: down, downwardAPI: {items: [{path: p, fieldRef: {fieldPath: metadata.name}}]}}
- {name: projected, projected: {sources: [{serviceAccountToken: {path: t}}, {downwardAPI: {items: [{path: p, fieldRef: {fieldPath: metadata.name}}]}}]}}`,
			strategies + `
volumes:
- {name: none, emptyDir: {}}
- {name: host, hostPath: {path: /h, type: ""}}
- {name: secret, secret: {secretName: s, defaultMode: 420}}
- {name: config, configMap: {name: c, defaultMode: 420}}
- {name: down, downwardAPI: {defaultMode: 420, items: [{path: p, fieldRef: {apiVersion: v1, fieldPath: metadata.name}}]}}
- name: projected
  projected:
    defaultMode: 420
    sources: [{serviceAccountToken: {path: t, expirationSeconds: 3600}}, {downwardAPI: {items: [{path: p, fieldRef: {apiVersion: v1, fieldPath: metadata.name}}]}}]`,
		},
		"a pinned revision, and metadata": {
			`{injectionStrategy: {revision: {customVersion: "1"}}, patchPodMetadata: [{annotations: {a: b}}]}`,
			strategies + `
injectionStrategy: {revision: {customVersion: "1", policy: Always}}
patchPodMetadata: [{annotations: {a: b}, patchPolicy: Retain}]`,
		},
		"what is given stays": {
			`{revisionHistoryLimit: 3, updateStrategy: {type: NotUpdate, maxUnavailable: 20%, partition: 3}, injectionStrategy: {revision: {revisionName: r, policy: Partial}}}`,
			`{revisionHistoryLimit: 3, updateStrategy: {type: NotUpdate, maxUnavailable: 20%, partition: 3}, injectionStrategy: {revision: {revisionName: r, policy: Partial}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			written := spec(t, tc.written)
			before := written.DeepCopy()
			completed := defaults.Completed(written)
			if diff := cmp.Diff(spec(t, tc.stored), completed); diff != "" {
				t.Errorf("-OpenKruise +Refit:\n%s", diff)
			}
			if diff := cmp.Diff(before, written); diff != "" {
				t.Errorf("the spec itself was changed:\n%s", diff)
			}
			if diff := cmp.Diff(completed, defaults.Completed(completed)); diff != "" {
				t.Errorf("the second time:\n%s", diff)
			}
		})
	}
}

func TestPullPolicyDependsOnTheTag(t *testing.T) {
	t.Parallel()
	const digest = "@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	for image, want := range map[string]corev1.PullPolicy{
		"x": corev1.PullAlways, "x:latest": corev1.PullAlways, "localhost:5000/x": corev1.PullAlways, "x:latest" + digest: corev1.PullAlways,
		"x:1": corev1.PullIfNotPresent, "x" + digest: corev1.PullIfNotPresent, "x:1" + digest: corev1.PullIfNotPresent,
		"UPPER": corev1.PullIfNotPresent, "": corev1.PullIfNotPresent, "x@sha256:short": corev1.PullIfNotPresent,
	} {
		if got := defaults.PullPolicy(image); got != want {
			t.Errorf("%q: %s, want %s", image, got, want)
		}
	}
}

// The CRD of an earlier version has set it: with it the hash would be another, and all pods outdated.
func TestAnEmptyServiceOfAProbeIsNone(t *testing.T) {
	t.Parallel()
	const probes = `livenessProbe: {grpc: {port: 1%[1]s}}, readinessProbe: {grpc: {port: 1%[1]s}}, startupProbe: {grpc: {port: 1%[1]s}}`
	const both = `{containers: [{name: log, image: log:1, ` + probes + `}], initContainers: [{name: mesh, image: mesh:1, restartPolicy: Always, ` + probes + `}]}`
	with, without, named := spec(t, fmt.Sprintf(both, `, service: ""`)), spec(t, fmt.Sprintf(both, "")), spec(t, fmt.Sprintf(both, `, service: a`))
	if diff := cmp.Diff(defaults.Normal(without), defaults.Normal(with)); diff != "" {
		t.Errorf("-without it +with it:\n%s", diff)
	}
	if cmp.Equal(defaults.Normal(without), defaults.Normal(named)) {
		t.Error("the name of a service is lost")
	}
	if with.Containers[0].LivenessProbe.GRPC.Service == nil {
		t.Error("the spec itself was changed")
	}
}

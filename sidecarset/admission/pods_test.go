package admission_test

import (
	"strings"
	"testing"

	"github.com/refit-project/refit/sidecarset/admission"
)

// Each of these would be accepted, and then the API server would refuse every pod that the SidecarSet selects.
func TestContainersAndVolumesThatNoPodCanHaveAreRefused(t *testing.T) {
	t.Parallel()
	container := func(fields string) string { return "containers: [{name: a, image: a:1, " + fields + "}]" }
	initial := func(fields string) string { return "initContainers: [{name: a, image: a:1, " + fields + "}]" }
	volume := func(fields string) string { return "containers: [{name: a, image: a:1}], volumes: [" + fields + "]" }
	for spec, want := range map[string]string{
		container("ports: [{containerPort: 70000}]"):                                                                          "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535",
		container("ports: [{containerPort: 0}]"):                                                                              "ports[0].containerPort",
		container("ports: [{containerPort: 65535, hostPort: 65535}, {containerPort: 1}]"):                                     "",
		container("ports: [{containerPort: 1, hostPort: 65536}]"):                                                             "ports[0].hostPort",
		container("ports: [{containerPort: 1, hostPort: -1}]"):                                                                "ports[0].hostPort",
		container("ports: [{containerPort: 1, protocol: HTTP}]"):                                                              "ports[0].protocol: Unsupported value",
		container("ports: [{containerPort: 1, name: a_b}]"):                                                                   "ports[0].name",
		container("ports: [{containerPort: 1, name: a}, {containerPort: 2, name: a}]"):                                        "ports[1].name: Duplicate",
		container("imagePullPolicy: Sometimes"):                                                                               "imagePullPolicy: Unsupported value",
		container("terminationMessagePolicy: None"):                                                                           "terminationMessagePolicy: Unsupported value",
		container("env: [{name: A, valueFrom: {}}]"):                                                                          "env[0].valueFrom: Required",
		container("env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}, secretKeyRef: {name: s, key: k}}}]"):     "env[0].valueFrom: Forbidden: only one of [FieldRef SecretKeyRef]",
		container("resources: {limits: {cpu: 1}, requests: {cpu: 1100m}}"):                                                    `resources.requests[cpu]: Invalid value: "1100m": must be at most the limit of 1`,
		container("resources: {limits: {cpu: 1}, requests: {cpu: 1000m, memory: 1Gi}}"):                                       "",
		container("resources: {limits: {memory: -1}}"):                                                                        "resources.limits[memory]",
		container("resources: {requests: {'a b': 1}}"):                                                                        "resources.requests[a b]",
		container("livenessProbe: {}"):                                                                                        "livenessProbe: Required",
		container("livenessProbe: {httpGet: {port: 1}, tcpSocket: {port: 1}}"):                                                "livenessProbe: Forbidden: only one of [HTTPGet TCPSocket]",
		container("livenessProbe: {httpGet: {port: 0}}"):                                                                      "livenessProbe.httpGet.port",
		container("livenessProbe: {httpGet: {port: http}}"):                                                                   "",
		container("livenessProbe: {httpGet: {port: 'a b'}}"):                                                                  "livenessProbe.httpGet.port",
		container("livenessProbe: {httpGet: {port: 1, scheme: FTP}}"):                                                         "livenessProbe.httpGet.scheme: Unsupported value",
		container("livenessProbe: {httpGet: {port: 1, httpHeaders: [{name: 'a b', value: c}]}}"):                              "httpHeaders[0].name",
		container("livenessProbe: {tcpSocket: {port: 65536}}"):                                                                "livenessProbe.tcpSocket.port",
		container("livenessProbe: {grpc: {port: 0}}"):                                                                         "livenessProbe.grpc.port",
		container("livenessProbe: {exec: {}}"):                                                                                "livenessProbe.exec.command: Required",
		container("livenessProbe: {exec: {command: [a]}, periodSeconds: -1}"):                                                 "livenessProbe.periodSeconds",
		container("livenessProbe: {exec: {command: [a]}, successThreshold: 2}"):                                               "livenessProbe.successThreshold: Invalid value: 2: must be 1",
		container("startupProbe: {exec: {command: [a]}, successThreshold: 2}"):                                                "startupProbe.successThreshold",
		container("startupProbe: {httpGet: {port: 1}}"):                                                                       "",
		container("readinessProbe: {exec: {command: [a]}, successThreshold: 2}"):                                              "",
		container("readinessProbe: {exec: {command: [a]}, terminationGracePeriodSeconds: 1}"):                                 "readinessProbe.terminationGracePeriodSeconds: Forbidden",
		container("livenessProbe: {exec: {command: [a]}, terminationGracePeriodSeconds: 0}"):                                  "livenessProbe.terminationGracePeriodSeconds: Invalid value: 0: must be at least 1",
		container("livenessProbe: {exec: {command: [a]}, terminationGracePeriodSeconds: 1}"):                                  "",
		container("lifecycle: {preStop: {}}"):                                                                                 "lifecycle.preStop: Required",
		container("lifecycle: {postStart: {exec: {command: [a]}, sleep: {seconds: 1}}}"):                                      "lifecycle.postStart: Forbidden",
		container("lifecycle: {preStop: {sleep: {seconds: -1}}}"):                                                             "lifecycle.preStop.sleep.seconds",
		container("lifecycle: {preStop: {sleep: {seconds: 0}}, postStart: {httpGet: {port: 1}}}"):                             "",
		container("lifecycle: {preStop: {exec: {}}}"):                                                                         "lifecycle.preStop.exec.command",
		container("lifecycle: {preStop: {tcpSocket: {port: 0}}}"):                                                             "lifecycle.preStop.tcpSocket.port",
		initial("livenessProbe: {exec: {command: [a]}}"):                                                                      "spec.initContainers[0].livenessProbe: Forbidden",
		initial("lifecycle: {preStop: {exec: {command: [a]}}}"):                                                               "lifecycle: Forbidden",
		initial("restartPolicy: Always, livenessProbe: {exec: {command: [a]}}, lifecycle: {preStop: {exec: {command: [a]}}}"): "",
		container("ports: [{containerPort: 1, protocol: SCTP}, {containerPort: 2, protocol: UDP}]"):                           "",
		container("imagePullPolicy: Never, terminationMessagePolicy: FallbackToLogsOnError"):                                  "",
		container("livenessProbe: {exec: {command: [a]}, initialDelaySeconds: -1}"):                                           "livenessProbe.initialDelaySeconds",
		container("livenessProbe: {exec: {command: [a]}, timeoutSeconds: -1}"):                                                "livenessProbe.timeoutSeconds",
		container("livenessProbe: {exec: {command: [a]}, failureThreshold: -1}"):                                              "livenessProbe.failureThreshold",
		container("readinessProbe: {exec: {command: [a]}, successThreshold: -1}"):                                             "readinessProbe.successThreshold",
		container("readinessProbe: {}"):                                                                                       "readinessProbe: Required",
		container("startupProbe: {}"):                                                                                         "startupProbe: Required",
		container("startupProbe: {exec: {command: [a]}, terminationGracePeriodSeconds: 1}"):                                   "",
		container("startupProbe: {httpGet: {port: 1, scheme: HTTPS}}, livenessProbe: {httpGet: {port: 65535, scheme: HTTP}}"): "",
		container("lifecycle: {postStart: {}}"):                                                                               "lifecycle.postStart: Required",
		container("lifecycle: {preStop: {httpGet: {port: 0}}}"):                                                               "lifecycle.preStop.httpGet.port",
		container("livenessProbe: {grpc: {port: 65536}}"):                                                                     "livenessProbe.grpc.port",
		container("livenessProbe: {grpc: {port: 65535}}"):                                                                     "",
		container("resources: {limits: {cpu: 0}}"):                                                                            "",
		container("resources: {requests: {cpu: -1}}"):                                                                         "resources.requests[cpu]",
		initial("readinessProbe: {exec: {command: [a]}}"):                                                                     "spec.initContainers[0].readinessProbe: Forbidden",
		initial("startupProbe: {exec: {command: [a]}}"):                                                                       "spec.initContainers[0].startupProbe: Forbidden",

		volume("{name: A_b, emptyDir: {}}"):                                                                      "spec.volumes[0].name",
		volume("{name: a}"):                                                                                      "",
		volume("{name: a, emptyDir: {}}, {name: a, emptyDir: {}}"):                                               "spec.volumes[1].name: Duplicate",
		volume("{name: a, emptyDir: {}, hostPath: {path: /}}"):                                                   "spec.volumes[0]: Forbidden: only one of [HostPath EmptyDir] can be given",
		volume("{name: a, emptyDir: {sizeLimit: -1}}"):                                                           "volumes[0].emptyDir.sizeLimit",
		volume("{name: a, hostPath: {path: ''}}"):                                                                "volumes[0].hostPath.path: Required",
		volume("{name: a, hostPath: {path: /a/../b}}"):                                                           "volumes[0].hostPath.path: Invalid",
		volume("{name: a, hostPath: {path: /, type: Door}}"):                                                     "volumes[0].hostPath.type: Unsupported value",
		volume("{name: a, secret: {}}"):                                                                          "volumes[0].secret.secretName: Required",
		volume("{name: a, secret: {secretName: s, defaultMode: 512}}"):                                           "volumes[0].secret.defaultMode",
		volume("{name: a, secret: {secretName: s, defaultMode: 511}}"):                                           "",
		volume("{name: a, configMap: {}}"):                                                                       "volumes[0].configMap.name: Required",
		volume("{name: a, configMap: {name: c, items: [{key: k, path: /p}]}}"):                                   "volumes[0].configMap.items[0].path",
		volume("{name: a, configMap: {name: c, items: [{key: '', path: p, mode: -1}]}}"):                         "volumes[0].configMap.items[0].key: Required",
		volume("{name: a, configMap: {name: c, items: [{key: k, path: a/../../p}]}}"):                            "volumes[0].configMap.items[0].path",
		volume("{name: a, downwardAPI: {items: [{path: p}]}}"):                                                   "volumes[0].downwardAPI.items[0]: Required",
		volume("{name: a, downwardAPI: {items: [{path: '', fieldRef: {fieldPath: metadata.name}}]}}"):            "volumes[0].downwardAPI.items[0].path: Required",
		volume("{name: a, downwardAPI: {items: [{path: p, mode: 1000, fieldRef: {fieldPath: metadata.name}}]}}"): "volumes[0].downwardAPI.items[0].mode",
		volume("{name: a, projected: {sources: [{secret: {name: s}, configMap: {name: c}}]}}"):                   "volumes[0].projected.sources[0]: Forbidden",
		volume("{name: a, projected: {sources: [{serviceAccountToken: {path: t, expirationSeconds: 60}}]}}"):     "serviceAccountToken.expirationSeconds",
		volume("{name: a, projected: {sources: [{serviceAccountToken: {path: t}}, {downwardAPI: {items: [{path: p, fieldRef: {fieldPath: metadata.name}}]}}, {secret: {name: s}}]}}"): "",
		volume("{name: a, projected: {sources: [{configMap: {name: s, items: [{key: k, path: ..p}]}}]}}"):                                                                             "configMap.items[0].path",
		volume("{name: a, persistentVolumeClaim: {claimName: ''}}"):                                                                                                                   "persistentVolumeClaim.claimName: Required",
		volume("{name: a, nfs: {server: s, path: ''}}"):                                                                                                                               "nfs.path: Required",
		volume("{name: a, csi: {driver: ''}}"):                                                                                                                                        "csi.driver: Required",
		volume("{name: a, hostPath: {path: /, type: DirectoryOrCreate}}, {name: b, hostPath: {path: /, type: Directory}}, {name: c, hostPath: {path: /, type: FileOrCreate}}, {name: d, hostPath: {path: /, type: File}}, {name: e, hostPath: {path: /, type: Socket}}, {name: f, hostPath: {path: /, type: CharDevice}}, {name: g, hostPath: {path: /, type: BlockDevice}}"): "",
		volume("{name: a, hostPath: {path: /a..b}}, {name: b, emptyDir: {sizeLimit: 0}}"):                                                                        "",
		volume("{name: a, nfs: {server: '', path: /}}"):                                                                                                          "nfs.server: Required",
		volume("{name: a, secret: {secretName: s, defaultMode: -1}}"):                                                                                            "volumes[0].secret.defaultMode",
		volume("{name: a, secret: {secretName: s, items: [{key: '', path: p}]}}"):                                                                                "volumes[0].secret.items[0].key: Required",
		volume("{name: a, configMap: {name: c, defaultMode: 512}}"):                                                                                              "volumes[0].configMap.defaultMode",
		volume("{name: a, configMap: {name: c, items: [{key: k, path: p, mode: 512}]}}"):                                                                         "volumes[0].configMap.items[0].mode",
		volume("{name: a, configMap: {name: c, items: [{key: k, path: a/b..c, mode: 0}]}}"):                                                                      "",
		volume("{name: a, downwardAPI: {defaultMode: 512, items: [{path: p, fieldRef: {fieldPath: metadata.name}}]}}"):                                           "volumes[0].downwardAPI.defaultMode",
		volume("{name: a, downwardAPI: {items: [{path: p, fieldRef: {fieldPath: metadata.name}, resourceFieldRef: {resource: limits.cpu, containerName: a}}]}}"): "volumes[0].downwardAPI.items[0]: Required",
		volume("{name: a, downwardAPI: {items: [{path: p, resourceFieldRef: {resource: limits.cpu, containerName: a}}]}}"):                                       "",
		volume("{name: a, projected: {defaultMode: 512, sources: [{secret: {name: s}}]}}"):                                                                       "volumes[0].projected.defaultMode",
		volume("{name: a, projected: {sources: [{secret: {name: s, items: [{key: k, path: /p}]}}]}}"):                                                            "projected.sources[0].secret.items[0].path",
		volume("{name: a, projected: {sources: [{downwardAPI: {items: [{path: p}]}}]}}"):                                                                         "projected.sources[0].downwardAPI.items[0]: Required",
		volume("{name: a, projected: {sources: [{serviceAccountToken: {path: /t}}]}}"):                                                                           "serviceAccountToken.path",
		volume("{name: a, projected: {sources: [{serviceAccountToken: {path: t, expirationSeconds: 599}}]}}"):                                                    "serviceAccountToken.expirationSeconds",
		volume("{name: a, projected: {sources: [{serviceAccountToken: {path: t, expirationSeconds: 600}}]}}"):                                                    "",
	} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			s := set(t, log(spec))
			got := admission.Check(s, nil, nil).ToAggregate()
			if want == "" {
				if got != nil {
					t.Errorf("refused: %v", got)
				}
				return
			}
			if got == nil || !strings.Contains(got.Error(), want) {
				t.Errorf("got %v, want %s", got, want)
			}
			changed := s.DeepCopy()
			changed.Spec.UpdateStrategy.Paused = true
			if errs := admission.Check(changed, s, nil); len(errs) > 0 && strings.Contains(errs.ToAggregate().Error(), want) {
				t.Errorf("what exists cannot be changed elsewhere: %v", errs.ToAggregate())
			}
			changed.Spec.Containers = append(changed.Spec.Containers, set(t, log("containers: [{name: b, image: b:1}]")).Spec.Containers...)
			if errs := admission.Check(changed, s, nil); len(errs) == 0 {
				t.Error("accepted with another change of the containers")
			}
		})
	}
}

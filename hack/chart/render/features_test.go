package render_test

import (
	"fmt"
	"strings"
	"testing"
)

// GitOps tools compare what is rendered with what is on the cluster: a Job that deletes itself differs for ever.
func TestJobOfTheCertificatesStays(t *testing.T) {
	t.Parallel()
	found, err := rendered(t, "")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for key := range found {
		if strings.HasPrefix(key, "Job/refit-certificates-") {
			n++
			if got := found.at(t, key+" {.spec.ttlSecondsAfterFinished}"); got != "" {
				t.Errorf("%s: ttlSecondsAfterFinished %s", key, got)
			}
		}
	}
	if n != 1 {
		t.Errorf("%d Jobs, want 1", n)
	}
}

// What a feature needs is granted with the feature only.
func TestPermissionsFollowTheFeatures(t *testing.T) {
	t.Parallel()
	for feature, resources := range map[string][]string{
		"images": {"imagepulljobs", "imagelistpulljobs", "nodeimages"}, "sidecarSets": {"sidecarsets"}, "podProbes": {"podprobemarkers", "nodepodprobes"},
		"restartRollouts": {"restartrollouts", "restartschedules", "clonesets"}, "inPlaceUpdates": {"inplaceupdatepolicies"}, "configChanges": {"restarttriggers", "configmaps"},
	} {
		for _, on := range []bool{true, false} {
			found, err := rendered(t, fmt.Sprintf("manager: {features: {%s: %t}}", feature, on))
			if err != nil {
				t.Fatal(err)
			}
			var granted string
			for key := range found {
				if strings.HasPrefix(key, "ClusterRole/refit-manager") {
					granted += found.at(t, key+" {.rules[*].resources}")
				}
			}
			for _, resource := range resources {
				if strings.Contains(granted, `"`+resource) != on {
					t.Errorf("%s=%t: %s in the rules of refit-manager is %t", feature, on, resource, !on)
				}
			}
		}
	}
}

// Users get no rights to objects that nothing acts on. Requests of RestartRollouts and of updates may be read without the feature for requests.
func TestRolesOfUsersFollowTheFeatures(t *testing.T) {
	t.Parallel()
	for feature, roles := range map[string][]string{
		"containerRecreateRequests": {"refit-containerrecreaterequest-editor"}, "podProbes": {"refit-podprobemarker-editor", "refit-podprobemarker-viewer"},
		"restartRollouts": {"refit-restartrollout-editor", "refit-restartrollout-viewer"}, "inPlaceUpdates": {"refit-inplaceupdatepolicy-editor", "refit-inplaceupdatepolicy-viewer"},
		"images": {"refit-imagepulljob-editor", "refit-imagepulljob-viewer", "refit-pull-secret-reader"}, "sidecarSets": {"refit-sidecarset-editor", "refit-sidecarset-viewer", "refit-sidecarset-pod-fields"},
		"containerRecreateRequests: false, restartRollouts: false, inPlaceUpdates": {"refit-containerrecreaterequest-viewer"},
	} {
		for _, on := range []bool{true, false} {
			values := fmt.Sprintf("manager: {features: {%s: %t}}", feature, on)
			found, err := rendered(t, values)
			if err != nil {
				t.Fatal(err)
			}
			for _, role := range roles {
				if _, there := found["ClusterRole/"+role]; there != on {
					t.Errorf("%s: the ClusterRole %s is rendered: %t", values, role, there)
				}
			}
		}
	}
}

// Without a Lease no manager leads: a manager creates it again if somebody has deleted it.
func TestTheManagerMayCreateItsLease(t *testing.T) {
	t.Parallel()
	expects(t, "", map[string]string{
		`Role/refit-manager {.rules[?(@.resources[0]=="leases")].verbs}`:         `["get","update"] ["create"]`,
		`Role/refit-manager {.rules[?(@.resources[0]=="leases")].resourceNames}`: `["refit-manager"]`,
	})
}

// expects renders the chart, and compares fields of its objects.
func expects(t *testing.T, values string, want map[string]string) objects {
	t.Helper()
	found, err := rendered(t, values)
	if err != nil {
		t.Fatal(err)
	}
	for where, want := range want {
		if got := found.at(t, where); got != want {
			t.Errorf("%s: %s\nwant %s", where, got, want)
		}
	}
	return found
}

func TestValuesOfPlatforms(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		values string
		want   map[string]string
	}{
		"a Job of certificates that is deleted": {
			values: "webhook: {certificates: {self: {jobSuffix: false}}}",
			want: map[string]string{
				"Job/refit-certificates {.spec.ttlSecondsAfterFinished}":                     "60",
				"Job/refit-certificates {.metadata.annotations.argocd\\.argoproj\\.io/hook}": "Sync",
			},
		},
		"credential plugins": {
			values: "daemon: {extraVolumes: [{name: plugins, hostPath: {path: /opt/plugins}}], extraVolumeMounts: [{name: plugins, mountPath: /plugins}], " +
				"initContainers: [{name: copy, image: plugins}], serviceAccount: {annotations: {role: pull}}}",
			want: map[string]string{
				daemon + ".volumes[*].name}":                               "runtime plugins",
				daemon + ".containers[0].volumeMounts[1].mountPath}":       "/plugins",
				daemon + ".initContainers[0].name}":                        "copy",
				"ServiceAccount/refit-daemon {.metadata.annotations.role}": "pull",
			},
		},
		"SELinux, and the rest of the security context stays": {
			values: "daemon: {containerSecurityContext: {seLinuxOptions: {type: spc_t}}, podSecurityContext: {fsGroup: 7}}\nmanager: {containerSecurityContext: {readOnlyRootFilesystem: false}}",
			want: map[string]string{
				daemon + ".containers[0].securityContext}":                                    `{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]},"readOnlyRootFilesystem":true,"runAsUser":0,"seLinuxOptions":{"type":"spc_t"}}`,
				daemon + ".securityContext}":                                                  `{"fsGroup":7,"seccompProfile":{"type":"RuntimeDefault"}}`,
				manager + ".containers[0].securityContext}":                                   `{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]},"readOnlyRootFilesystem":false}`,
				"Pod/refit-test {.spec.containers[0].securityContext.readOnlyRootFilesystem}": "false",
				"CronJob/refit-certificates {.spec.jobTemplate.spec.template.spec.containers[0].securityContext.readOnlyRootFilesystem}": "false",
			},
		},
		"a virtual node has no daemon": {want: map[string]string{
			daemon + ".affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms}": `[{"matchExpressions":[{"key":"type","operator":"NotIn","values":["virtual-kubelet"]}]}]`,
		}},
		"affinity of the daemon": {
			values: "daemon: {affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {}}]}}}",
			want: map[string]string{
				daemon + ".affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[*].matchExpressions[*].key}": "type",
				daemon + ".affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight}":                                   "1",
			},
		},
		"more containers and volumes of the manager": {
			values: "manager: {extraVolumes: [{name: a, emptyDir: {}}], extraVolumeMounts: [{name: a, mountPath: /a}], extraContainers: [{name: proxy, image: proxy}], initContainers: [{name: first, image: first}]}",
			want: map[string]string{
				manager + ".volumes[*].name}": "a", manager + ".containers[0].volumeMounts[*].mountPath}": "/a", manager + ".containers[*].name}": "manager proxy", manager + ".initContainers[*].name}": "first",
			},
		},
		"volumes beside the authority of the API server": {
			values: "manager: {extraVolumes: [{name: a, emptyDir: {}}], extraVolumeMounts: [{name: a, mountPath: /a}]}\nwebhook: {callers: {clientCA: {configMapName: c}}}",
			want:   map[string]string{manager + ".volumes[*].name}": "client-ca a", manager + ".containers[0].volumeMounts[*].name}": "client-ca a"},
		},
		"accounts that are there already": {
			values: "daemon: {serviceAccount: {create: false}}\nmanager: {serviceAccount: {create: false}}",
			want: map[string]string{
				"ServiceAccount/refit-daemon {.kind}": "no ServiceAccount/refit-daemon", "ServiceAccount/refit-manager {.kind}": "no ServiceAccount/refit-manager",
				"ClusterRoleBinding/refit-daemon {.subjects[0].name}": "refit-daemon", manager + ".serviceAccountName}": "refit-manager",
			},
		},
		"history": {
			values: "daemon: {revisionHistoryLimit: 3}\nmanager: {revisionHistoryLimit: 0}",
			want:   map[string]string{"DaemonSet/refit-daemon {.spec.revisionHistoryLimit}": "3", "Deployment/refit-manager {.spec.revisionHistoryLimit}": "0"},
		},
		"where the manager runs, and as whom": {
			values: "manager: {affinity: {nodeAffinity: {}}, topologySpreadConstraints: [{topologyKey: zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}], podSecurityContext: {runAsUser: null}, serviceAccount: {annotations: {a: b}}}",
			want: map[string]string{
				manager + ".topologySpreadConstraints[0].topologyKey}": "zone", manager + ".securityContext.runAsUser}": "", manager + ".securityContext.runAsNonRoot}": "true",
				"ServiceAccount/refit-manager {.metadata.annotations.a}": "b",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expects(t, tc.values, tc.want)
		})
	}
}

package v1beta1_test

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// The hash that pods carry is of this text: a field that is added, renamed or moved would make every sidecar outdated.
func TestContainersAreEncodedAsByOpenKruise(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		container v1beta1.SidecarContainer
		want      string
	}{
		"least": {
			container: v1beta1.SidecarContainer{Container: corev1.Container{Name: "log"}},
			want:      `{"name":"log","resources":{},"upgradeStrategy":{},"shareVolumePolicy":{}}`,
		},
		"all fields of OpenKruise": {
			container: v1beta1.SidecarContainer{
				Container:       corev1.Container{Name: "log", Image: "log:1", Env: []corev1.EnvVar{{Name: "A", Value: "1"}}},
				PodInjectPolicy: v1beta1.BeforeAppContainer,
				UpgradeStrategy: v1beta1.SidecarContainerUpgradeStrategy{
					UpgradeType: v1beta1.HotUpgrade, HotUpgradeEmptyImage: "empty:1",
				},
				ShareVolumePolicy:       v1beta1.ShareVolumePolicy{Type: v1beta1.ShareVolumeEnabled},
				ShareVolumeDevicePolicy: &v1beta1.ShareVolumePolicy{Type: v1beta1.ShareVolumeDisabled},
				TransferEnv: []v1beta1.TransferEnvVar{{
					SourceContainerName: "app", EnvName: "TZ", EnvNames: []string{"LANG"},
					SourceContainerNameFrom: &v1beta1.SourceContainerNameSource{
						FieldRef: &v1beta1.PodFieldSelector{APIVersion: "v1", FieldPath: "metadata.labels['main']"},
					},
				}},
				ResourcesPolicy: &v1beta1.ResourcesPolicy{
					TargetContainersMode: v1beta1.TargetContainersSum, TargetContainersNameRegex: ".*",
					ResourcesExpr: v1beta1.ResourcesExpr{
						Limits: &v1beta1.ResourceExprList{CPU: "cpu", Memory: "200Mi"}, Requests: &v1beta1.ResourceExprList{CPU: "50m"},
					},
				},
			},
			want: `{"name":"log","image":"log:1","env":[{"name":"A","value":"1"}],"resources":{},"podInjectPolicy":"BeforeAppContainer",` +
				`"upgradeStrategy":{"upgradeType":"HotUpgrade","hotUpgradeEmptyImage":"empty:1"},"shareVolumePolicy":{"type":"enabled"},` +
				`"shareVolumeDevicePolicy":{"type":"disabled"},"transferEnv":[{"sourceContainerName":"app",` +
				`"sourceContainerNameFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.labels['main']"}},"envName":"TZ","envNames":["LANG"]}],` +
				`"resourcesPolicy":{"targetContainersMode":"sum","targetContainersNameRegex":".*","resourcesExpr":{"limits":` +
				`{"cpu":"cpu","memory":"200Mi"},"requests":{"cpu":"50m"}}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := json.Marshal(tc.container)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// A manager that is older than the cluster must not take fields away from the containers of a SidecarSet that it writes, or injects.
func TestFieldsOfANewerKubernetesAreKept(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"two fields":      `{"name":"log","resources":{},"upgradeStrategy":{},"shareVolumePolicy":{},"alpha":{"b":[1,{"c":null}]},"zeta":"<&>"}`,
		"none":            `{"name":"log","resources":{},"upgradeStrategy":{},"shareVolumePolicy":{},"versionLabel":"v"}`,
		"of another case": `{"name":"log","resources":{},"upgradeStrategy":{},"shareVolumePolicy":{},"Image":"other:1"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var container v1beta1.SidecarContainer
			if err := json.Unmarshal([]byte(text), &container); err != nil {
				t.Fatal(err)
			}
			want := strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(text, "<", `\u003c`), "&", `\u0026`), ">", `\u003e`)
			if got, err := json.Marshal(container.DeepCopy()); err != nil || string(got) != want {
				t.Errorf("got  %s, %v\nwant %s", got, err, want)
			}
		})
	}
	container := v1beta1.SidecarContainer{Unknown: v1beta1.UnknownFields{"old": json.RawMessage(`1`)}}
	if err := json.Unmarshal([]byte(`{"name":"log"}`), &container); err != nil || container.Unknown != nil {
		t.Errorf("decoded into a container that had fields: %v, %v", container.Unknown, err)
	}
	if got, err := (v1beta1.UnknownFields{"a": json.RawMessage(`1`)}).Append([]byte(`{}`)); err != nil || string(got) != `{"a":1}` {
		t.Errorf("got %s, %v", got, err)
	}
	if err := json.Unmarshal([]byte(`{"name":1}`), &container); err == nil {
		t.Error("a name that is a number is accepted")
	}
}

package configchange_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/rollout/configchange"
)

func template() *corev1.PodSpec {
	ref := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	return &corev1.PodSpec{
		InitContainers: []corev1.Container{
			{Name: "setup", EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("setup")}}}},
			{Name: "log", RestartPolicy: new(corev1.ContainerRestartPolicyAlways), VolumeMounts: []corev1.VolumeMount{{Name: "log"}}},
		},
		Containers: []corev1.Container{{
			Name: "app",
			EnvFrom: []corev1.EnvFromSource{
				{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("env")}},
				{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref("env")}},
			},
			Env: []corev1.EnvVar{
				{Name: "A", Value: "a"},
				{Name: "B", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
				{Name: "C", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref("key")}}},
				{Name: "D", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref("key")}}},
				{Name: "E", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref("files")}}},
			},
			VolumeMounts: []corev1.VolumeMount{{Name: "files"}, {Name: "secret"}, {Name: "projected"}},
		}, {
			Name: "other", VolumeMounts: []corev1.VolumeMount{{Name: "unused"}},
			EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("log")}}},
		}},
		Volumes: []corev1.Volume{
			{Name: "files", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: ref("files")}}},
			{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "tls"}}},
			{Name: "projected", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: ref("projected")}},
				{Secret: &corev1.SecretProjection{LocalObjectReference: ref("projected")}},
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
			}}}},
			{Name: "log", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: ref("log")}}},
			{Name: "unused", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: ref("other")}}},
		},
	}
}

func TestReferencesAreThoseOfTheContainersOnly(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		containers []string
		want       []configchange.Reference
	}{
		"all kinds": {[]string{"app"}, []configchange.Reference{
			{Kind: "ConfigMap", Name: "env"}, {Kind: "ConfigMap", Name: "files", Mounted: true}, {Kind: "ConfigMap", Name: "key"}, {Kind: "ConfigMap", Name: "projected", Mounted: true},
			{Kind: "Secret", Name: "env"}, {Kind: "Secret", Name: "key"}, {Kind: "Secret", Name: "projected", Mounted: true}, {Kind: "Secret", Name: "tls", Mounted: true},
		}},
		"native sidecar": {[]string{"log"}, []configchange.Reference{{Kind: "ConfigMap", Name: "log", Mounted: true}}},
		// The volume of the first is updated before the restart, although the second has only its environment of it.
		"two containers": {[]string{"other", "log"}, []configchange.Reference{{Kind: "ConfigMap", Name: "log", Mounted: true}, {Kind: "ConfigMap", Name: "other", Mounted: true}}},
		"none":           {[]string{"nope"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, configchange.References(template(), tc.containers)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnnotationsAreReadOrRefusedWithTheirName(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		containers, limit string
		want              configchange.Settings
		error             string
	}{
		"one":            {containers: "app", want: configchange.Settings{Containers: []string{"app"}}},
		"two":            {containers: "app, log", want: configchange.Settings{Containers: []string{"app", "log"}}},
		"number":         {containers: "app", limit: "3", want: configchange.Settings{Containers: []string{"app"}, MaxUnavailable: new(intstr.FromInt32(3))}},
		"percentage":     {containers: "app", limit: "25%", want: configchange.Settings{Containers: []string{"app"}, MaxUnavailable: new(intstr.FromString("25%"))}},
		"the least":      {containers: "app", limit: "1%", want: configchange.Settings{Containers: []string{"app"}, MaxUnavailable: new(intstr.FromString("1%"))}},
		"all":            {containers: "app", limit: "100%", want: configchange.Settings{Containers: []string{"app"}, MaxUnavailable: new(intstr.FromString("100%"))}},
		"nothing":        {containers: "app", limit: "0%", error: "metadata.annotations[refit.dev/restart-max-unavailable]: "},
		"no number":      {containers: "app", limit: "one", error: "must be a number"},
		"empty":          {containers: "", error: "metadata.annotations[refit.dev/restart-on-config-change]: "},
		"unknown":        {containers: "app,nope", error: `no container "nope"`},
		"init container": {containers: "setup", error: `no container "setup"`},
		"repeated":       {containers: "app,app", error: `"app" is repeated`},
		"zero":           {containers: "app", limit: "0", error: "metadata.annotations[refit.dev/restart-max-unavailable]: "},
		"101 %":          {containers: "app", limit: "101%", error: "percentage"},
		"too large":      {containers: "app", limit: "99999999999", error: "number"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			annotations := map[string]string{v1alpha1.AnnotationRestartOnConfigChange: tc.containers}
			if tc.limit != "" {
				annotations[v1alpha1.AnnotationRestartMaxUnavailable] = tc.limit
			}
			got, err := configchange.Read(annotations, template())
			if tc.error != "" {
				if err == nil || !strings.Contains(err.Error(), tc.error) {
					t.Errorf("%v, want %s", err, tc.error)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

// A RestartRollout can restart no other init container, and at most 256 containers.
func TestContainersOfAnAnnotationCanBeRestartedByARollout(t *testing.T) {
	t.Parallel()
	pod := &corev1.PodSpec{InitContainers: []corev1.Container{
		{Name: "mesh", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}, {Name: "retried", RestartPolicy: new(corev1.ContainerRestartPolicyOnFailure)}, {Name: "setup"},
	}}
	var most []string
	for i := range 256 {
		most = append(most, fmt.Sprintf("c%d", i))
		pod.Containers = append(pod.Containers, corev1.Container{Name: most[i]})
	}
	for names, wrong := range map[string]bool{
		"mesh": false, "retried": true, "setup": true, strings.Join(most, ","): false, strings.Join(append(most, "mesh"), ","): true,
	} {
		if _, err := configchange.Read(map[string]string{v1alpha1.AnnotationRestartOnConfigChange: names}, pod); (err != nil) != wrong {
			t.Errorf("%.40s: %v", names, err)
		}
	}
}

func TestDigestsDifferExactlyWithTheContent(t *testing.T) {
	t.Parallel()
	configMap := func(data map[string]string, binary map[string][]byte) string {
		return configchange.DigestConfigMap(&corev1.ConfigMap{Data: data, BinaryData: binary})
	}
	base := configMap(map[string]string{"a": "1", "b": "2"}, nil)
	if base != configMap(map[string]string{"b": "2", "a": "1"}, map[string][]byte{}) {
		t.Error("the same content has two digests")
	}
	for name, other := range map[string]string{
		"value":       configMap(map[string]string{"a": "1", "b": "3"}, nil),
		"key":         configMap(map[string]string{"a": "1", "c": "2"}, nil),
		"moved bytes": configMap(map[string]string{"a": "1b", "": "2"}, nil),
		"binary":      configMap(map[string]string{"a": "1"}, map[string][]byte{"b": []byte("2")}),
		"less":        configMap(map[string]string{"a": "1"}, nil),
	} {
		if other == base {
			t.Errorf("%s: the digest is the same", name)
		}
	}
	secret := func(value, salt string) string {
		digest, err := configchange.DigestSecret(&corev1.Secret{Data: map[string][]byte{"password": []byte(value)}}, salt)
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	if one := secret("x", "u"); one != secret("x", "u") || one == secret("y", "u") || one == secret("x", "v") {
		t.Error("digests of Secrets do not tell contents and triggers apart")
	}
}

// The message is written to a condition of the RestartTrigger, which has at most 32 KiB.
func TestLongAnnotationIsShortenedInTheMessage(t *testing.T) {
	t.Parallel()
	annotations := map[string]string{v1alpha1.AnnotationRestartOnConfigChange: strings.Repeat("é\u202e", 20_000)}
	_, err := configchange.Read(annotations, &corev1.PodSpec{})
	if err == nil || len(err.Error()) > 500 || strings.Contains(err.Error(), "\u202e") {
		t.Errorf("%.1000v", err)
	}
}

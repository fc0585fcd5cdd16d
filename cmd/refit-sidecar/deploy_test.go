package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const manifests = "../../deploy/sidecar"

// documents of one kind from all example manifests, by file and name.
func documents[T any](t *testing.T, kind string) map[string]T {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.yaml", "*/*.yaml"} {
		more, err := filepath.Glob(filepath.Join(manifests, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, more...)
	}
	found := map[string]T{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
		for {
			text, err := reader.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			var meta struct {
				metav1.TypeMeta   `json:",inline"`
				metav1.ObjectMeta `json:"metadata"`
			}
			if err := errors.Join(err, yaml.Unmarshal(text, &meta)); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if meta.Kind != kind {
				continue
			}
			var one T
			if err := yaml.UnmarshalStrict(text, &one); err != nil {
				t.Errorf("%s: %v", file, err)
			}
			found[filepath.Base(file)+" "+meta.Name] = one
		}
	}
	return found
}

// pods are the example pods, and each one's container with the sidecar.
func pods(t *testing.T) map[string]struct {
	corev1.Pod
	sidecar corev1.Container
} {
	t.Helper()
	all := map[string]struct {
		corev1.Pod
		sidecar corev1.Container
	}{}
	for name, pod := range documents[corev1.Pod](t, "Pod") {
		containers := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
		i := slices.IndexFunc(containers, func(c corev1.Container) bool { return strings.Contains(c.Image, "refit-sidecar") })
		if i < 0 {
			continue
		}
		one := all[name]
		one.Pod, one.sidecar = pod, containers[i]
		all[name] = one
	}
	if len(all) < 3 {
		t.Fatalf("%d example pods", len(all))
	}
	return all
}

// Least privilege: nothing beyond the namespace, named ConfigMaps, no right to create or change pods, and the
// token in the sidecar alone.
func TestLeastPrivilege(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding"} {
		if found := documents[map[string]any](t, kind); len(found) > 0 {
			t.Errorf("%s: %v", kind, found)
		}
	}
	roles := documents[rbacv1.Role](t, "Role")
	if len(roles) == 0 {
		t.Error("no Role")
	}
	for name, role := range roles {
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				if why := tooMuch(resource, rule); why != "" {
					t.Errorf("%s: %s %v: %s", name, resource, rule.Verbs, why)
				}
			}
		}
	}
	for name, account := range documents[corev1.ServiceAccount](t, "ServiceAccount") {
		if account.AutomountServiceAccountToken == nil || *account.AutomountServiceAccountToken {
			t.Errorf("%s is mounted everywhere", name)
		}
	}
	for name, pod := range pods(t) {
		if auto := pod.Spec.AutomountServiceAccountToken; auto == nil || *auto {
			t.Errorf("%s mounts the token everywhere", name)
		}
		for _, volume := range pod.Spec.Volumes {
			secret := volume.Secret != nil || volume.Projected != nil && slices.ContainsFunc(volume.Projected.Sources,
				func(s corev1.VolumeProjection) bool { return s.ServiceAccountToken != nil })
			for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
				mounted := slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume.Name })
				if secret && mounted && c.Name != pod.sidecar.Name {
					t.Errorf("%s: container %s sees %s", name, c.Name, volume.Name)
				}
			}
		}
	}
}

func tooMuch(resource string, rule rbacv1.PolicyRule) string {
	named := len(rule.ResourceNames) > 0
	may := func(verbs ...string) bool {
		return slices.ContainsFunc(rule.Verbs, func(v string) bool { return v == "*" || slices.Contains(verbs, v) })
	}
	switch {
	case resource == "*" || slices.Contains(rule.APIGroups, "*"):
		return "everything"
	case resource == "secrets" && !named:
		return "every Secret"
	case resource == "pods" && may("create", "update", "patch", "delete", "deletecollection"):
		return "pods are changed through their status"
	case strings.HasPrefix(resource, "pods/") && resource != "pods/status":
		return "exec and the like"
	case resource == "configmaps" && !named && may("get", "list", "watch", "update", "patch", "delete"):
		return "every ConfigMap"
	case may("delete", "deletecollection", "escalate", "bind", "impersonate"):
		return "not needed"
	}
	return ""
}

// The examples run the one static program without what it does not need.
func TestExamplesAreHardened(t *testing.T) {
	t.Parallel()
	for name, pod := range pods(t) {
		c := pod.sidecar.SecurityContext
		if c == nil || c.ReadOnlyRootFilesystem == nil || !*c.ReadOnlyRootFilesystem || c.AllowPrivilegeEscalation == nil || *c.AllowPrivilegeEscalation {
			t.Errorf("%s: %+v", name, c)
			continue
		}
		if c.Capabilities == nil || !slices.Contains(c.Capabilities.Drop, "ALL") ||
			slices.ContainsFunc(c.Capabilities.Add, func(added corev1.Capability) bool { return added != "KILL" }) {
			t.Errorf("%s: capabilities %+v", name, c.Capabilities)
		}
		if len(c.Capabilities.Add) > 0 && (c.RunAsUser == nil || *c.RunAsUser != 0) {
			t.Errorf("%s: KILL does nothing for a user that is not root", name)
		}
	}
}

// The examples work as they are: the configuration is where the program looks for it, in the pod's own namespace
// and valid, and the folder that it updates is one that the program sees.
func TestExamplesFitTogether(t *testing.T) {
	t.Parallel()
	maps := documents[corev1.ConfigMap](t, "ConfigMap")
	for name, pod := range pods(t) {
		path := ""
		for _, arg := range pod.sidecar.Args {
			if given, ok := strings.CutPrefix(arg, "--config="); ok {
				path = given
			}
		}
		config := configOf(pod.Spec.Volumes, pod.sidecar, path, maps)
		if config == "" {
			t.Errorf("%s: no ConfigMap of the examples is mounted at %q", name, path)
			continue
		}
		file := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := execute(t, "validate", file); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if shared := sharedWith(pod.Pod, pod.sidecar); !slices.ContainsFunc(shared, func(dir string) bool { return strings.Contains(config, "fileDir: "+dir+"\n") }) {
			t.Errorf("%s: fileDir is none of the shared folders %q", name, shared)
		}
	}
}

// configOf is the text that the sidecar finds at path.
func configOf(volumes []corev1.Volume, sidecar corev1.Container, path string, maps map[string]corev1.ConfigMap) string {
	for _, m := range sidecar.VolumeMounts {
		if filepath.Dir(path) != m.MountPath {
			continue
		}
		for _, v := range volumes {
			if v.Name != m.Name || v.ConfigMap == nil {
				continue
			}
			for _, c := range maps {
				if c.Name == v.ConfigMap.Name && c.Namespace == "" {
					return c.Data[filepath.Base(path)]
				}
			}
		}
	}
	return ""
}

// sharedWith are the sidecar's folders that another container sees, too.
func sharedWith(pod corev1.Pod, sidecar corev1.Container) []string {
	var shared []string
	for _, m := range sidecar.VolumeMounts {
		for _, c := range pod.Spec.Containers {
			if c.Name != sidecar.Name && slices.ContainsFunc(c.VolumeMounts, func(other corev1.VolumeMount) bool { return other.Name == m.Name }) {
				shared = append(shared, m.MountPath)
			}
		}
	}
	return shared
}

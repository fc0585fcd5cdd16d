package e2e_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestHotUpdateChangesWhatNginxServesWithoutARestart is the KEP's flow with each of the example pods: a request to the
// pod's port, a download, SIGHUP to 'nginx: master process nginx'.
func TestHotUpdateChangesWhatNginxServesWithoutARestart(t *testing.T) {
	t.Parallel()
	for name, manifest := range map[string]string{"beside": "pod.yaml", "native sidecar": "pod-native.yaml", "not root": "pod-nonroot.yaml"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSidecarFixture(t)
			pod := s.start(s.examplePod(manifest))
			s.serves(pod.Name, "Welcome to nginx")
			s.awaitCondition(pod.Name, selfTested, corev1.ConditionTrue, "all that is configured can work here")

			s.accepted(pod.Name, "v1")
			s.serves(pod.Name, "this is v1")
			s.accepted(pod.Name, "v2")
			s.serves(pod.Name, "this is v2")

			s.run("wait", "--for=condition=refit.dev/HotUpdated", "pod/"+pod.Name, "--timeout=30s")
			s.awaitPod(pod.Name, "to tell of v2", func(pod *corev1.Pod) bool {
				return pod.Annotations["refit.dev/hot-update-result"] == "v2: Update success" &&
					strings.Contains(pod.Annotations["refit.dev/hot-update-detail"], `"phase":"Accepted"`)
			})
			s.awaitEvent("HotUpdateSucceeded", "v1")
			s.awaitEvent("HotUpdateSucceeded", "v2")
			for _, container := range []string{"nginx", "refit-sidecar"} {
				s.untouched(pod, container)
			}
		})
	}
}

// TestRefusedUpdatesLeaveWhatIsServed sends what must not work, one after another, to one pod.
func TestRefusedUpdatesLeaveWhatIsServed(t *testing.T) {
	t.Parallel()
	s := newSidecarFixture(t)
	pod := s.start(s.examplePod("pod.yaml")).Name
	s.accepted(pod, "v1")

	good := s.source("v2/default.conf")
	s.refused(s.update(pod, "", "v2", good), http.StatusUnauthorized, "bearer token")
	s.refused(s.update(pod, "another-token", "v2", good), http.StatusUnauthorized, "bearer token")
	s.refused(s.update(pod, sidecarToken, "newest", good), http.StatusBadRequest, "valid version")
	s.refused(s.update(pod, sidecarToken, "v2", ""), http.StatusBadRequest, "valid URL")
	s.refused(s.update(pod, sidecarToken, "v2", s.source("away")), http.StatusInternalServerError, "failed to download file", "169.254.169.254", "link-local")
	s.refused(s.update(pod, sidecarToken, "v2", "http://169.254.169.254/latest/meta-data/x"), http.StatusInternalServerError, "link-local")
	s.refused(s.update(pod, sidecarToken, "v2", s.source("none.conf")), http.StatusInternalServerError, "failed to download file", "404")
	s.refused(s.updateJSON(pod, "/hot-update", map[string]any{"version": "v2", "url": good, "sha256": strings.Repeat("0", 64)}),
		http.StatusInternalServerError, "sha256")
	s.serves(pod, "this is v1")

	// nginx logs that it cannot read this and goes on; that the new version does not show is what gives it away.
	s.refused(s.update(pod, sidecarToken, "v3", s.source("bad/default.conf")), http.StatusInternalServerError, "verif", "v1", "v3")
	s.serves(pod, "this is v1")
	s.awaitCondition(pod, hotUpdated, corev1.ConditionFalse, "v3: Update failed")
	s.awaitEvent("HotUpdateFailed", "v3")
	s.awaitPod(pod, "to tell of v3", func(pod *corev1.Pod) bool {
		return strings.HasPrefix(pod.Annotations["refit.dev/hot-update-result"], "v3: Update failed") &&
			strings.Contains(pod.Annotations["refit.dev/hot-update-detail"], `"rolledBack":true`)
	})

	// Under the version in force the check would pass, because nginx continues with the old file.
	s.refused(s.update(pod, sidecarToken, "v1", s.source("bad/default.conf")), http.StatusBadRequest, "in force with other content")
	s.serves(pod, "this is v1")

	s.accepted(pod, "v2")
	s.serves(pod, "this is v2")
	if got := s.updateJSON(pod, "/rollback", map[string]any{}); got.code != http.StatusOK || !strings.Contains(got.body, `"version":"v1"`) {
		t.Errorf("rollback: %+v", got)
	}
	s.serves(pod, "this is v1")
}

// TestPrecheckRefusesBeforeAnythingChanges has nginx itself judge the candidate: the sidecar's container is of nginx's image,
// and the sidecar's program comes into it as an image volume.
func TestPrecheckRefusesBeforeAnythingChanges(t *testing.T) {
	t.Parallel()
	s := newSidecarFixture(t, "          verify:\n", `          precheck:
            - name: nginx -t
              exec: [sh, -c, "echo 'events {} http { include {path}/*.conf; }' >/tmp/candidate && nginx -t -q -c /tmp/candidate -g 'user root; pid /tmp/pid;'"]
          verify:
`)
	pod := s.examplePod("pod.yaml")
	sidecar := &pod.Spec.Containers[1]
	pod.Spec.Volumes = append(pod.Spec.Volumes,
		corev1.Volume{Name: "program", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: sidecar.Image}}},
		corev1.Volume{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	sidecar.VolumeMounts = append(sidecar.VolumeMounts,
		corev1.VolumeMount{Name: "program", MountPath: "/refit"},
		corev1.VolumeMount{Name: "tmp", MountPath: "/tmp"}, corev1.VolumeMount{Name: "tmp", MountPath: "/var/lib/nginx"})
	sidecar.Image, sidecar.Command = pod.Spec.Containers[0].Image, []string{"/refit/refit-sidecar"}
	s.start(pod)
	s.accepted(pod.Name, "v1")
	s.refused(s.update(pod.Name, sidecarToken, "v3", s.source("bad/default.conf")), http.StatusInternalServerError, "nginx -t", "unknown directive", `"this"`)
	s.serves(pod.Name, "this is v1")
	for _, reload := range s.logLines(pod.Name, "nginx") {
		if strings.Contains(reload, "unknown directive") {
			t.Errorf("the program got a candidate that was refused: %s", reload)
		}
	}
	// Content that comes with the request is judged in the same way.
	content := base64.StdEncoding.EncodeToString([]byte("server {"))
	s.refused(s.updateJSON(pod.Name, "/hot-update", map[string]any{"version": "v4", "name": "default.conf", "data": content}),
		http.StatusInternalServerError, "nginx -t", "unexpected end of file")
	s.untouched(s.pod(pod.Name), "nginx")
}

func (s *sidecarFixture) logLines(pod, container string) []string {
	s.t.Helper()
	namespace, name := s.at(s.t.Context(), pod)
	out, err := s.kubectl(s.t.Context(), "", "--namespace", namespace, "logs", name, "--container", container)
	s.check(err, "logs: %s", out)
	return strings.Split(out, "\n")
}

// TestUpdateFromAConfigMap needs nobody to send a request: the object is watched through the API.
func TestUpdateFromAConfigMap(t *testing.T) {
	t.Parallel()
	s := newSidecarFixture(t, "          verify:\n", "          triggers:\n            - configMap: site\n          verify:\n")
	s.run("create", "role", "site", "--verb=get,list,watch", "--resource=configmaps", "--resource-name=site")
	s.run("create", "rolebinding", "site", "--role=site", "--serviceaccount="+s.namespace+":refit-sidecar")
	pod := s.start(s.examplePod("pod.yaml"))
	s.serves(pod.Name, "Welcome to nginx")
	for _, version := range []string{"v1", "v2"} {
		s.apply("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: site\n  annotations: {refit.dev/content-version: " + version + "}\ndata:\n  default.conf: |" + siteConfig(version) + "\n")
		s.serves(pod.Name, "this is "+version)
		s.awaitPod(pod.Name, "to tell of "+version, func(pod *corev1.Pod) bool {
			return pod.Annotations["refit.dev/hot-update-result"] == version+": Update success"
		})
	}
	s.untouched(pod, "nginx")
}

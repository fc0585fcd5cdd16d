package e2e_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// hasty is an edit of the configuration: the sidecar is ready soon, restored or not.
var hasty = []string{"detailAnnotationKey: refit.dev/hot-update-detail", "detailAnnotationKey: refit.dev/hot-update-detail\n          restore: {waitSeconds: 5}"}

// tarGzOf is an archive with one file.
func tarGzOf(name, content string) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))})
	_, writeErr := w.Write([]byte(content))
	err = errors.Join(err, writeErr, w.Close(), z.Close())
	return b.Bytes(), err
}

// TestANameThatIsNotUTF8EndsNoHotUpdates: it is refused from a form and from an archive, and all goes on after a kill and in a new pod.
func TestANameThatIsNotUTF8EndsNoHotUpdates(t *testing.T) {
	t.Parallel()
	s := newSidecarFixture(t)
	s.deployment("names", s.examplePod("pod.yaml"))
	pod := s.podOfDeployment("names", "")
	s.accepted(pod.Name, "v1")
	form := "version=v50&name=caf%e9&url=" + s.source("v2/default.conf")
	got, err := s.send(t.Context(), call{
		pod: pod.Name, port: 5000, method: http.MethodPost, path: "/hot-update", token: sidecarToken,
		mediaType: "application/x-www-form-urlencoded", body: strings.NewReader(form),
	})
	s.check(err, "update")
	s.refused(got, http.StatusBadRequest, "UTF-8")
	archive, err := tarGzOf("caf\xe9", "x")
	s.check(err, "make archive")
	s.refused(s.updateJSON(pod.Name, "/hot-update", map[string]any{"version": "v51", "format": "tar.gz", "data": archive}), http.StatusInternalServerError, "UTF-8")
	s.accepted(pod.Name, "v2")
	s.kill(s.pod(pod.Name), "refit-sidecar", "refit-sidecar")
	s.refused(s.updateJSON(pod.Name, "/rollback", map[string]any{"version": "v1"}), http.StatusOK)
	s.serves(pod.Name, "this is v1")
	s.accepted(pod.Name, "v2")
	s.remembered("Deployment.names", "v2")
	s.check(s.Delete(t.Context(), pod, client.GracePeriodSeconds(0)), "delete pod")
	next := s.podOfDeployment("names", pod.Name)
	s.serves(next.Name, "this is v2")
	s.accepted(next.Name, "v1")
}

// TestAnUpdateTakesNothingFromTheWorkload: a new pod that cannot have all files begins with the newest revision that it can have
// as a whole, and does not make its own the workload's.
func TestAnUpdateTakesNothingFromTheWorkload(t *testing.T) {
	t.Parallel()
	s := newSidecarFixture(t, hasty...)
	s.deployment("keeps", s.examplePod("pod.yaml"))
	pod := s.podOfDeployment("keeps", "")
	s.accepted(pod.Name, "v1")
	s.remembered("Deployment.keeps", "v1")
	both := []map[string]any{{"url": s.source("v2/default.conf")}, {"name": "extra.conf", "data": []byte("# of the request\n")}}
	s.refused(s.updateJSON(pod.Name, "/hot-update", map[string]any{"version": "v2", "files": both}), http.StatusOK)
	s.remembered("Deployment.keeps", "v2")
	s.check(s.Delete(t.Context(), pod, client.GracePeriodSeconds(0)), "delete pod")

	next := s.podOfDeployment("keeps", pod.Name)
	s.serves(next.Name, "this is v1")
	s.awaitPod(next.Name, "to say what it lacks", func(pod *corev1.Pod) bool {
		return containsAll(pod.Annotations["refit.dev/hot-update-result"], []string{"v2: Update failed: restore", "v1 is in force instead"})
	})
	s.refused(s.update(next.Name, sidecarToken, "v2", s.source("v2/default.conf")), http.StatusConflict, "extra.conf")
	s.remembered("Deployment.keeps", "v2")
	all := map[string]any{"version": "v2", "keep": false, "url": s.source("v2/default.conf")}
	s.refused(s.updateJSON(next.Name, "/hot-update", all), http.StatusOK)
	s.serves(next.Name, "this is v2")
	s.accepted(next.Name, "v1")
}

// TestRestoreOutlastsAMissingRole: somebody replaces the RoleBinding while a pod starts.
func TestRestoreOutlastsAMissingRole(t *testing.T) {
	t.Parallel()
	s := newSidecarFixture(t, hasty...)
	s.deployment("bound", s.examplePod("pod.yaml"))
	pod := s.podOfDeployment("bound", "")
	s.accepted(pod.Name, "v1")
	s.remembered("Deployment.bound", "v1")
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "refit-sidecar"}}
	s.check(s.Delete(t.Context(), binding), "delete role binding")
	s.check(s.Delete(t.Context(), pod, client.GracePeriodSeconds(0)), "delete pod")
	next := s.podOfDeployment("bound", pod.Name)
	s.serves(next.Name, "Welcome to nginx")
	s.refused(s.update(next.Name, sidecarToken, "v2", s.source("v2/default.conf")), http.StatusServiceUnavailable, "forbidden")
	s.apply(s.example("10-rbac.yaml"))
	s.serves(next.Name, "this is v1")
	s.awaitPod(next.Name, "to tell of what was restored", func(pod *corev1.Pod) bool {
		return pod.Annotations["refit.dev/hot-update-result"] == "v1: Update success"
	})
	s.awaitCondition(next.Name, selfTested, corev1.ConditionTrue)
	s.accepted(next.Name, "v2")
}

// TestManyLargeRequestsFitIntoTheMemoryOfTheExample sends as much at once as the limit of the example could not hold.
func TestManyLargeRequestsFitIntoTheMemoryOfTheExample(t *testing.T) {
	t.Parallel()
	s := newSidecarFixture(t)
	pod := s.examplePod("pod.yaml")
	s.start(pod)
	before := s.pod(pod.Name)
	body := `{"version":"v1","name":"large","dryRun":true,"data":"` + strings.Repeat("QUFB", 2_000_000) + `"}`
	for range 3 {
		var sending sync.WaitGroup
		for range 12 {
			sending.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
				defer cancel()
				// The connection of a request that is refused may end before all of it has been sent.
				got, err := s.send(ctx, call{
					pod: pod.Name, port: 5000, method: http.MethodPost, path: "/hot-update", token: sidecarToken,
					mediaType: "application/json", body: strings.NewReader(body),
				})
				if err == nil && got.code != http.StatusOK && got.code != http.StatusConflict {
					t.Errorf("HTTP status %d: %s", got.code, got.body)
				}
			})
		}
		sending.Wait()
	}
	s.port(t.Context(), pod.Name, 5000).Close() // kubectl ends some time after one of the connections has broken off
	s.accepted(pod.Name, "v1")
	s.untouched(before, "refit-sidecar")
}

// TestDeletedFilesOfTheSidecarAreRestored: the application deletes what the sidecar keeps in their volume. The sidecar's container
// is not restarted.
func TestDeletedFilesOfTheSidecarAreRestored(t *testing.T) {
	t.Parallel()
	s := newSidecarFixture(t)
	s.deployment("deleted", s.examplePod("pod.yaml"))
	pod := s.podOfDeployment("deleted", "")
	s.accepted(pod.Name, "v1")
	s.remembered("Deployment.deleted", "v1")
	s.await("the files of the sidecar to be deleted", func(ctx context.Context) (bool, error) {
		_, err := s.inContainer(ctx, pod.Name, "nginx", "rm -rf /etc/nginx/conf.d/..refit") // fails if the sidecar writes at that moment
		return err == nil, nil
	})
	s.await("the file to be restored", func(ctx context.Context) (bool, error) {
		text, err := s.inContainer(ctx, pod.Name, "nginx", "cat /etc/nginx/conf.d/default.conf")
		return err == nil && strings.Contains(text, "this is v1"), nil
	})
	s.awaitEvent("PluginFailed", "..refit")
	s.await("the sidecar to have restored v1", func(ctx context.Context) (bool, error) {
		status, err := s.status(ctx, pod.Name)
		return err == nil && status.Ready && status.current() == "v1", nil
	})
	s.accepted(pod.Name, "v2")
	s.serves(pod.Name, "this is v2")
	s.untouched(pod, "refit-sidecar")
}

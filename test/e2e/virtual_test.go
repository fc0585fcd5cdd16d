package e2e_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

// TestPodProbeMarkerLabelsAPodOfAVirtualNode is the whole serverless protocol: the webhook of refit-manager writes the probes to an
// annotation, refit-sidecar runs them and writes conditions, refit-manager sets the labels.
func TestPodProbeMarkerLabelsAPodOfAVirtualNode(t *testing.T) {
	t.Parallel()
	s := newSidecarFixture(t)
	s.needsVirtualNode(t)
	var marker v1alpha1.PodProbeMarker
	s.check(yaml.Unmarshal([]byte(`
spec:
  selector: {matchLabels: {app: web}}
  probes:
  - {name: page, containerName: nginx, podConditionType: game.example.com/page, probe: {periodSeconds: 1, httpGet: {path: /page, port: 80}},
     markerPolicy: [{state: Succeeded, labels: {page: "yes"}}, {state: Failed, labels: {page: "no"}}]}
`), &marker), "read marker")
	marker.Namespace, marker.Name = s.namespace, "web"
	s.check(s.Create(t.Context(), &marker), "create marker")
	pod := s.examplePod("pod.yaml")
	s.await("pods to be created with their probes", func(ctx context.Context) (bool, error) {
		tried := pod.DeepCopy()
		err := s.Create(ctx, tried, client.DryRunAll)
		return err == nil && tried.Annotations[v1alpha1.AnnotationPodProbeMarkerList] == "web", err
	})
	s.start(pod)
	s.labeled("page", "no")
	s.exec("web", "nginx", "touch /usr/share/nginx/html/page")
	s.labeled("page", "yes")
	s.exec("web", "nginx", "rm /usr/share/nginx/html/page")
	s.labeled("page", "no")
	s.check(s.Delete(t.Context(), &marker), "delete marker")
	s.awaitPod("web", "to lose label and condition", func(pod *corev1.Pod) bool {
		return pod.Labels["page"] == "" && condition(pod, "game.example.com/page") == ""
	})
	var passed v1alpha1.NodePodProbe
	if err := client.IgnoreNotFound(s.Get(t.Context(), client.ObjectKey{Name: s.virtual.name}, &passed)); err != nil || len(passed.Spec.PodProbes) > 0 {
		t.Errorf("probes for a daemon of the virtual node: %+v, %v", passed.Spec, err)
	}
}

func (s *sidecarFixture) labeled(key, value string) {
	s.t.Helper()
	s.awaitPod("web", "to have the label "+key+"="+value, func(pod *corev1.Pod) bool { return pod.Labels[key] == value })
}

// TestSidecarSetInjectsIntoAPodOfAVirtualNode uses the injected sidecar: an update of files, and a request for a container.
func TestSidecarSetInjectsIntoAPodOfAVirtualNode(t *testing.T) {
	t.Parallel()
	s := newSidecarFixture(t, "      # - name: container_recreate", "      - name: container_recreate")
	s.needsVirtualNode(t)
	var set v1beta1.SidecarSet
	s.check(yaml.Unmarshal([]byte(s.example("examples/sidecarset.yaml")), &set), "read SidecarSet")
	set.Name, set.Spec.Namespace = s.namespace, s.namespace
	s.check(s.Create(t.Context(), &set), "create SidecarSet")
	t.Cleanup(func() { s.check(s.Delete(context.WithoutCancel(t.Context()), &set), "delete SidecarSet") })

	pod := s.examplePod("pod.yaml")
	pod.Spec.ServiceAccountName, pod.Spec.ShareProcessNamespace = "", nil
	pod.Spec.Containers, pod.Spec.Volumes = pod.Spec.Containers[:1], pod.Spec.Volumes[:1]
	s.knows(pod, "refit-sidecar")
	web := s.start(pod)
	if names := strings.Join(containerNames(web), ","); names != "first-files,refit-sidecar,nginx" || web.Spec.ServiceAccountName != "refit-sidecar" {
		t.Fatalf("containers %s, service account %q", names, web.Spec.ServiceAccountName)
	}
	s.accepted("web", "v1")
	s.serves("web", "this is v1")
	s.ask("restart", "web/nginx")
	s.succeeded("restart")
	s.restarted(web, "nginx", 1)
	s.untouched(web, "refit-sidecar")
	s.serves("web", "this is v1")
}

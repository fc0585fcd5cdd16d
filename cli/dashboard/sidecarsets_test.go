package dashboard

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/defaults"
	"github.com/refit-project/refit/sidecarset/revision"
)

func mesh(image string) *v1beta1.SidecarSet {
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "mesh", UID: "uid-mesh"}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "proxy", Image: image}}}
	set.Status = v1beta1.SidecarSetStatus{MatchedPods: 3, UpdatedPods: 1, LatestRevision: "mesh-2"}
	return set
}

// withSidecar is a pod with the sidecar of a revision of the SidecarSet.
func withSidecar(name string, number int) *corev1.Pod {
	of := mesh(fmt.Sprintf("proxy:%d", number))
	spec := defaults.Normal(&of.Spec)
	p := pod(name)
	version := annotation.Version{SidecarSet: "mesh", Revision: fmt.Sprintf("mesh-%d", number), Hashes: revision.HashesOf(spec), Sidecars: []string{"proxy"}}
	for key, value := range annotation.Write(p, &version, metav1.NewTime(noon)) {
		p.Annotations[key] = value
	}
	proxy := spec.Containers[0].Container
	proxy.Env = append(proxy.Env, corev1.EnvVar{Name: v1beta1.EnvSidecarInjected, Value: "true"})
	p.Spec.Containers = append(p.Spec.Containers, proxy)
	return p
}

func TestSidecarSetHasARowForEachPod(t *testing.T) {
	t.Parallel()
	objects := []client.Object{mesh("proxy:2"), pod("without"), withSidecar("new", 2), withSidecar("old", 1)}
	for number := range 2 {
		one, err := revision.New(mesh(fmt.Sprintf("proxy:%d", number+1)), "refit-system", int64(number+1))
		if err != nil {
			t.Fatal(err)
		}
		one.Name = fmt.Sprintf("mesh-%d", number+1)
		objects = append(objects, one)
	}
	got := open(t, nil, objects...).get(t, "/sidecarset?name=mesh")
	contains(t, got, "Pods in namespace shop", ">old</a></td><td>node-1</td><td>1</td><td>outdated</td><td>yes</td>", `>new</a></td><td>node-1</td><td>2</td><td class="good">updated</td><td>yes</td>`, "mesh-1")
	if strings.Contains(got.body, "without") {
		t.Errorf("a pod without the sidecar:\n%s", got.body)
	}
	if got := open(t, nil).get(t, "/sidecarset?name=mesh"); got.code != 404 {
		t.Errorf("%d %s", got.code, got.body)
	}
}

// Of many pods the ones that are not updated are shown.
func TestSidecarSetOfManyPods(t *testing.T) {
	t.Parallel()
	objects := []client.Object{mesh("proxy:2"), withSidecar("zz-old", 1)}
	for i := range maxRows + 2 {
		objects = append(objects, withSidecar(fmt.Sprintf("web-%04d", i), 2))
	}
	got := open(t, nil, objects...).get(t, "/sidecarset?name=mesh")
	contains(t, got, "Pods: 3 more are not shown.", ">zz-old</a>", ">web-0000</a>")
	if rows := strings.Count(got.body, ">web-"); rows != maxRows-1 {
		t.Errorf("%d rows of updated pods", rows)
	}
}

func TestLateProbesOfNodes(t *testing.T) {
	t.Parallel()
	late := &v1beta1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	late.Spec.PodProbes = []v1beta1.PodProbe{{Name: "web", Namespace: "shop", UID: "u", Probes: []v1beta1.ContainerProbe{{Name: "m#a"}, {Name: "m#b"}}}}
	late.Status.PodProbeStatuses = []v1beta1.PodProbeStatus{{Name: "web", Namespace: "shop", UID: "u", ProbeStates: []v1beta1.ContainerProbeState{{Name: "m#a", State: v1beta1.ProbeFailed}, {Name: "m#b", State: v1beta1.ProbeSucceeded}}}}
	late.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionProbesDelayed, Status: metav1.ConditionTrue, Message: "they run at 3 times their periods"}}
	quiet := &v1beta1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "node-2"}}
	got := open(t, nil, late, quiet).get(t, "/nodes")
	contains(t, got, "Probes are late on 1 node.", `<td class="bad">2 probes, 1 failed; late: they run at 3 times their periods</td>`, "<td>0 probes</td>")
}

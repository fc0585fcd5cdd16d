package upgrade_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/kubelet"
	"github.com/refit-project/refit/sidecarset/annotation"
	"github.com/refit-project/refit/sidecarset/rollout"
	"github.com/refit-project/refit/test/kit/watchdog"
)

// OpenKruise names revisions otherwise, and writes the name before it knows the newest: the hash decides.
func TestSpecOfAPodIsFoundByItsHash(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(w *world, injected *annotation.Version)
		want   string
	}{
		"a name that is not known": {func(_ *world, v *annotation.Version) { v.Revision = "logs-6d9f7c8b5d" }, "Outdated"},
		"the name of the newest":   {func(w *world, v *annotation.Version) { v.Revision = w.target.Revision }, "Outdated"},
		"a hash that is not known": {func(_ *world, v *annotation.Version) { v.Hashes.Full, v.Hashes.WithoutImage = "x", "y" },
			"NotUpgradable: the pod is of a revision that is no longer known, and more than images has changed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, cold("log", "log:1", requests("100m")))
			injected := w.target.Version
			w.spec(func(s *v1beta1.SidecarSetSpec) { s.Containers[0].Resources = cpu("200m") })
			tt.change(w, &injected)
			for key, value := range annotation.Write(w.pod, &injected, annotation.Of(w.pod, "logs").UpdateTimestamp) {
				w.pod.Annotations[key] = value
			}
			w.is(tt.want)
			if tt.want != "Outdated" {
				return
			}
			w.update()
			w.is("Updated")
			if got := w.pod.Spec.Containers[1].Resources.Requests.Cpu().String(); got != "200m" {
				t.Errorf("CPU %s", got)
			}
		})
	}
}

// What other webhooks have added to an injected container is theirs; what the spec asks for has to be there.
func TestContainerMayHaveMoreThanTheSpec(t *testing.T) {
	t.Parallel()
	from := &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}
	asked := func(c *v1beta1.SidecarContainer) {
		c.Env = []corev1.EnvVar{{Name: "A", Value: "a"}, {Name: "B", ValueFrom: from}}
	}
	for name, tt := range map[string]struct {
		change func(*corev1.Container)
		want   string
	}{
		"as injected":          {func(*corev1.Container) {}, "Updated"},
		"command and args":     {func(c *corev1.Container) { c.Command, c.Args = []string{"wrap"}, []string{"log"} }, "Updated"},
		"another variable":     {func(c *corev1.Container) { c.Env = append([]corev1.EnvVar{{Name: "X", Value: "x"}}, c.Env...) }, "Updated"},
		"a variable less":      {func(c *corev1.Container) { c.Env = c.Env[1:] }, "NotUpgradable: env A of container log is not as in the spec"},
		"another value":        {func(c *corev1.Container) { c.Env[0].Value = "x" }, "NotUpgradable: env A of container log is not as in the spec"},
		"a second value":       {func(c *corev1.Container) { c.Env = append(c.Env, corev1.EnvVar{Name: "A", Value: "x"}) }, "NotUpgradable: env A of container log is not as in the spec"},
		"the same twice":       {func(c *corev1.Container) { c.Env = append(c.Env, corev1.EnvVar{Name: "A", Value: "a"}) }, "Updated"},
		"a value from nowhere": {func(c *corev1.Container) { c.Env[1].ValueFrom = nil }, "NotUpgradable: env B of container log is not as in the spec"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, cold("log", "log:1", asked))
			tt.change(&w.pod.Spec.Containers[1])
			w.is(tt.want)
		})
	}
}

// Whoever may patch a pod may write that it has the newest sidecars; its containers say otherwise.
func TestAForgedHashDoesNotMakeAPodUpdated(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		newest func(*v1beta1.SidecarContainer)
		want   string
	}{
		"an image":    {func(c *v1beta1.SidecarContainer) { c.Image = "log:2" }, "Outdated"},
		"a command":   {func(c *v1beta1.SidecarContainer) { c.Command = []string{"new"} }, "NotUpgradable: command of container log is not as in the spec"},
		"an argument": {func(c *v1beta1.SidecarContainer) { c.Args = []string{"new"} }, "NotUpgradable: args of container log is not as in the spec"},
		"a variable":  {func(c *v1beta1.SidecarContainer) { c.Env = []corev1.EnvVar{{Name: "A", Value: "new"}} }, "NotUpgradable: env A of container log is not as in the spec"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, cold("log", "log:1"))
			w.spec(func(s *v1beta1.SidecarSetSpec) { tt.newest(&s.Containers[0]) })
			w.forge()
			w.is(tt.want)
		})
	}
}

func TestPodMayHaveItsOwnResources(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		allowed []v1beta1.PodOverride
		own     bool
		want    string
	}{
		"allowed, and its own":     {[]v1beta1.PodOverride{v1beta1.OverrideResources}, true, "100m"},
		"allowed, and not its own": {[]v1beta1.PodOverride{v1beta1.OverrideResources}, false, "200m"},
		"not allowed":              {nil, true, "200m"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, cold("log", "log:1", requests("100m")))
			if tt.own {
				w.pod.Annotations[v1beta1.PrefixSidecarResources+"log"] = `{"requests":{"cpu":"100m"}}`
			}
			w.spec(func(s *v1beta1.SidecarSetSpec) {
				s.Containers[0].Resources, s.Containers[0].Image = cpu("200m"), "log:2"
				s.InjectionStrategy.AllowedPodOverrides = tt.allowed
			})
			w.update()
			w.is("Updated")
			got := w.pod.Spec.Containers[1]
			if want := resource.MustParse(tt.want); got.Resources.Requests.Cpu().Cmp(want) != 0 || got.Image != "log:2" {
				t.Errorf("%+v, want CPU %s", got, tt.want)
			}
		})
	}
}

// With a daemon nothing is unclear: two tags of one digest are told apart at once.
func TestFactsOfTheNodeTellThatAnUpdateIsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1"))
	w.image("log:1-again")
	w.update()
	status := &w.pod.Status.ContainerStatuses[1]
	status.Image, status.ImageID = "log:1", "sha256:log:1"
	if v := w.judge(); !v.InFlight {
		t.Fatalf("without a report: %+v", v)
	}
	w.pod.Annotations[v1beta1.AnnotationRuntimeContainersMeta] = reportOf(t, status, &w.pod.Spec.Containers[1])
	w.is("Updated")
	w.pod.Annotations[v1beta1.AnnotationRuntimeContainersMeta] = "broken"
	if v := w.judge(); !v.InFlight {
		t.Errorf("with a report that cannot be read: %+v", v)
	}
}

func reportOf(t *testing.T, status *corev1.ContainerStatus, container *corev1.Container) string {
	t.Helper()
	hash, err := strconv.ParseUint(kubelet.ContainerHash(container), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"containers":[{"name":%q,"containerID":%q,"hashes":{"plainHash":%d}}]}`, status.Name, status.ContainerID, hash)
}

func TestPodOfAnUnknownRevision(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1"))
	w.revisions = nil
	w.image("log:2")
	w.is("Outdated")
	w.revisions = nil
	w.spec(func(s *v1beta1.SidecarSetSpec) { s.Containers[0].Resources = cpu("2") })
	w.is("NotUpgradable: the pod is of a revision that is no longer known, and more than images has changed")
	w.pod.Annotations = nil
	w.is("NotUpgradable: the pod has no readable annotation kruise.io/sidecarset-hash of the SidecarSet")
}

// Its owner repairs or recreates the pod: until then its status says why.
func TestPodWithAnUnreadableRecordIsNotUpgradable(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no JSON":              `broken`,
		"no record":            `{"logs":1}`,
		"a quantity":           `{"logs":{"revision":"x","nextContainerResources":{"log":{"requests":{"cpu":"1e2147483647"}}}}}`,
		"one that takes hours": `{"logs":{"revision":"x","nextContainerResources":{"log":{"requests":{"cpu":"1e300000000"}}}}}`,
		"a time":               `{"logs":{"updateTimestamp":"9999-12-31T23:59:59Z"}}`,
		"deep":                 `{"logs":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, cold("log", "log:1", requests("100m")))
			w.pod.Annotations[v1beta1.AnnotationSidecarSetInPlaceUpdateState] = text
			w.image("log:2")
			watchdog.Watch(t, func() {
				if v := w.judge(); v.State != rollout.NotUpgradable || !v.Unreadable || !strings.Contains(v.Message, "sidecarset-inplace-update-state of pod") || len(v.Message) > 512 {
					t.Errorf("got %s", v.String())
				}
				for _, begin := range []bool{true, false} {
					if step, err := w.target.Step(w.pod, begin, w.now); step != nil || err != nil {
						t.Errorf("written: %+v, %v", step, err)
					}
				}
			})
			delete(w.pod.Annotations, v1beta1.AnnotationSidecarSetInPlaceUpdateState)
			w.update()
			w.is("Updated")
		})
	}
}

func TestPodWithAHostileQuantityIsNotUpgradable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cold("log", "log:1", requests("100m")))
	w.pod.Spec.Containers[0].Resources = cpu("1e2147483647")
	w.spec(func(s *v1beta1.SidecarSetSpec) { s.Containers[0].Resources = cpu("200m") })
	watchdog.Watch(t, func() {
		if v := w.judge(); v.State != rollout.NotUpgradable || !v.Unreadable || !strings.Contains(v.Message, "resources.requests[cpu]: not readable") {
			t.Errorf("got %s", v.String())
		}
	})
}

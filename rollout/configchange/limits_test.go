package configchange_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/rollout/configchange"
)

// The reason is in Events and logs of every restart.
func TestReasonNamesAFewOfTheChangedObjects(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{
		1: "ConfigMap c0 has changed",
		2: "ConfigMap c0, ConfigMap c1 have changed",
		3: "ConfigMap c0, ConfigMap c1, ConfigMap c2 have changed",
		4: "ConfigMap c0, ConfigMap c1, 2 others have changed",
		9: "ConfigMap c0, ConfigMap c1, 7 others have changed",
	} {
		f := newFixture()
		f.observed.References, f.observed.Objects = nil, nil
		for i := range n {
			f.observed.References = append(f.observed.References, configchange.Reference{Kind: "ConfigMap", Name: fmt.Sprint("c", i)})
			f.observed.Objects = append(f.observed.Objects, v1alpha1.ConfigObject{Kind: "ConfigMap", Name: fmt.Sprint("c", i), Digest: "a"})
		}
		f.look(0)
		for i := range n {
			f.set(fmt.Sprint("c", i), "b")
		}
		f.settle()
		if len(f.created) != 1 || f.created[0].Annotations[v1beta1.AnnotationReason] != want {
			t.Errorf("%d objects: %+v, want %q", n, f.created, want)
		}
	}
}

func TestStatusSaysWhatIsWaitedFor(t *testing.T) {
	t.Parallel()
	f := newFixture()
	says := func(reason, message string) {
		t.Helper()
		if gotReason, got := f.reason(); gotReason != reason || got != message {
			t.Errorf("%s: %s; want %s: %s", gotReason, got, reason, message)
		}
	}
	says(v1alpha1.ReasonWatching, "2 ConfigMaps and Secrets are watched")
	f.set("settings", "c")
	f.look(0)
	says(v1alpha1.ReasonPending, "ConfigMap settings has changed: waiting for further changes")
	f.look(3)
	says(v1alpha1.ReasonPending, "ConfigMap settings has changed: waiting for kubelet to update the volumes")
	if !f.last.Again.Equal(f.now.Add(3 * time.Second)) {
		t.Errorf("again at %s", f.last.Again)
	}
	f.look(3)
	says(v1alpha1.ReasonWatching, "2 ConfigMaps and Secrets are watched")
	if f.trigger.Status.Rollouts != 1 || f.trigger.Status.LastRollout != f.created[0].Name || *f.created[0].Spec.TTLSecondsAfterFinished != 86400 {
		t.Errorf("%+v", f.trigger.Status)
	}
}

func TestAnImmutableObjectThatIsReplacedHasNoPartInTheRestartForAnother(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.observed.Objects[0].Immutable = true
	f.look(0)
	f.set("env", "c")
	f.set("settings", "c")
	if f.look(0); !strings.HasPrefix(f.last.Kept, "ConfigMap env has changed; nothing is restarted") {
		t.Errorf("%q", f.last.Kept)
	}
	if f.settle(); len(f.created) != 1 || f.created[0].Annotations[v1beta1.AnnotationReason] != "ConfigMap settings has changed" || f.last.Kept != "" {
		t.Errorf("%+v, says again %q", f.created, f.last.Kept)
	}
}

func TestContainersOfATriggerAreBounded(t *testing.T) {
	t.Parallel()
	for n, refused := range map[int]bool{256: false, 257: true} {
		var pod corev1.PodSpec
		var names []string
		for i := range n {
			names = append(names, fmt.Sprint("c", i))
			pod.Containers = append(pod.Containers, corev1.Container{Name: names[i]})
		}
		_, err := configchange.Read(map[string]string{v1alpha1.AnnotationRestartOnConfigChange: strings.Join(names, ",")}, &pod)
		if (err != nil) != refused {
			t.Errorf("%d containers: %v", n, err)
		}
	}
}

// Names of objects end with a letter or a digit.
func TestNamesThatAreCutAreValid(t *testing.T) {
	t.Parallel()
	for _, name := range []string{strings.Repeat("a", 168) + ".-b" + strings.Repeat("c", 30), strings.Repeat("a", 169)} {
		got := configchange.TriggerName("Deployment", name)
		if strings.Contains(got, ".-") || strings.Contains(got, "--") || len(got) > 191 {
			t.Errorf("%q", got)
		}
	}
	if got := configchange.TriggerName("Deployment", strings.Repeat("a", 169)); got != "deployment-"+strings.Repeat("a", 169) {
		t.Errorf("a name that fits was cut: %s", got)
	}
}

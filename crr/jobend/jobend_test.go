package jobend_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/crr/jobend"
	"github.com/refit-project/refit/internal/cache/trim"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const (
	stopped  = `env: [{name: KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT, value: "true"}]`
	replaced = `env: [{name: KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE, value: "exit:1"}]`
	twice    = `env: [{name: KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT, value: "true"}, {name: KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT, value: "false"}]`
	both     = `env: [{name: KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT, value: "TRUE"}, {name: KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE, value: "exit:1"}]`
	done     = "state: {terminated: {exitCode: 0}}"
	failed   = "state: {terminated: {exitCode: 1}}"
	running  = "state: {running: {}}"
)

// pod returns a pod with containers app, mesh and log, with the given specs and statuses.
func pod(t *testing.T, policy string, spec, status [3]string) *corev1.Pod {
	t.Helper()
	text := "metadata: {namespace: shop, name: job, uid: u1}\nspec: {nodeName: node-1, restartPolicy: " + policy + ", containers: [{name: app, image: app:1"
	names := [3]string{"app", "mesh", "log"}
	for i, s := range spec {
		if i > 0 {
			text += "}, {name: " + names[i] + ", image: " + names[i] + ":1"
		}
		if s != "" {
			text += ", " + s
		}
	}
	text += "}]}\nstatus: {phase: Running, containerStatuses: ["
	for i, s := range status {
		if s != "" {
			text += "{name: " + names[i] + ", containerID: 'containerd://" + names[i] + "', " + s + "},"
		}
	}
	p := &corev1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(text+"]}"), p); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return p
}

func TestSidecarsEndWithTheMainContainers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		policy  string
		spec    [3]string
		status  [3]string
		virtual bool
		change  func(*corev1.Pod)
		stop    string // names of the containers of the request
		images  map[string]string
	}{
		"one ended":                           {spec: [3]string{1: stopped, 2: stopped}, status: [3]string{done, running, running}, stop: "mesh log"},
		"one failed":                          {spec: [3]string{1: stopped, 2: stopped}, status: [3]string{failed, running, running}, stop: "mesh log"},
		"a failure is tried again":            {policy: "OnFailure", spec: [3]string{1: stopped, 2: stopped}, status: [3]string{failed, running, running}},
		"a success is not":                    {policy: "OnFailure", spec: [3]string{1: stopped, 2: stopped}, status: [3]string{done, running, running}, stop: "mesh log"},
		"one of two main ones runs":           {spec: [3]string{1: stopped}, status: [3]string{done, running, running}},
		"both have ended":                     {spec: [3]string{1: stopped}, status: [3]string{done, running, done}, stop: "mesh"},
		"one that kubelet says nothing of":    {spec: [3]string{1: stopped}, status: [3]string{done, running, ""}},
		"a sidecar has ended":                 {spec: [3]string{1: stopped, 2: stopped}, status: [3]string{done, failed, running}, stop: "log"},
		"a sidecar that is started again":     {policy: "OnFailure", spec: [3]string{1: stopped, 2: stopped}, status: [3]string{done, failed, done}, stop: "mesh"},
		"a sidecar that was never created":    {spec: [3]string{1: stopped, 2: stopped}, status: [3]string{done, "", running}, stop: "log"},
		"a sidecar that is being created":     {spec: [3]string{1: stopped, 2: stopped}, status: [3]string{done, running, running}, change: func(p *corev1.Pod) { p.Status.ContainerStatuses[1].ContainerID = "" }, stop: "log"},
		"no restart policy is known":          {spec: [3]string{1: stopped, 2: stopped}, status: [3]string{done, running, running}, change: func(p *corev1.Pod) { p.Spec.RestartPolicy = "" }},
		"all have ended":                      {spec: [3]string{1: stopped, 2: stopped}, status: [3]string{done, done, done}},
		"no sidecar is marked":                {status: [3]string{done, running, running}},
		"marked, and false":                   {spec: [3]string{1: strings.Replace(stopped, "true", "false", 1)}, status: [3]string{done, running, done}},
		"all are marked":                      {spec: [3]string{stopped, stopped, stopped}, status: [3]string{done, running, running}},
		"restarted for ever":                  {policy: "Always", spec: [3]string{1: stopped, 2: stopped}, status: [3]string{done, running, running}},
		"being deleted":                       {spec: [3]string{1: stopped, 2: stopped}, status: [3]string{done, running, running}, change: func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} }},
		"has ended":                           {spec: [3]string{1: stopped, 2: stopped}, status: [3]string{done, running, running}, change: func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }},
		"on no node":                          {spec: [3]string{1: stopped, 2: stopped}, status: [3]string{done, running, running}, change: func(p *corev1.Pod) { p.Spec.NodeName = "" }},
		"by its image":                        {spec: [3]string{1: replaced, 2: stopped}, status: [3]string{done, running, running}, stop: "log", images: map[string]string{"mesh": "exit:1"}},
		"the image is replaced":               {spec: [3]string{1: replaced, 2: replaced}, status: [3]string{done, running, running}, change: func(p *corev1.Pod) { p.Spec.Containers[1].Image = "exit:1" }, images: map[string]string{"log": "exit:1"}},
		"stopped rather than replaced":        {spec: [3]string{1: both, 2: stopped}, status: [3]string{done, running, running}, stop: "mesh log"},
		"on a virtual node by its image":      {spec: [3]string{1: both, 2: replaced}, status: [3]string{done, running, running}, virtual: true, images: map[string]string{"mesh": "exit:1", "log": "exit:1"}},
		"on a virtual node without an image":  {spec: [3]string{1: stopped, 2: stopped}, status: [3]string{done, running, running}, virtual: true},
		"asked for once of two times":         {spec: [3]string{1: twice, 2: stopped}, status: [3]string{done, running, running}, stop: "mesh log"},
		"a main one of a pod without an end":  {policy: "Always", spec: [3]string{"restartPolicy: Never", stopped, stopped}, status: [3]string{done, running, running}},
		"one that says nothing of its end":    {policy: `""`, spec: [3]string{"restartPolicy: Never", stopped, stopped}, status: [3]string{done, running, running}},
		"a main one with a policy of its own": {spec: [3]string{"restartPolicy: Always", stopped, stopped}, status: [3]string{done, running, running}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.policy == "" {
				tc.policy = "Never"
			}
			p := pod(t, tc.policy, tc.spec, tc.status)
			if tc.change != nil {
				tc.change(p)
			}
			if cached := trim.NewPods(trim.Part{Keep: jobend.Keep}).Of(p.DeepCopy()); jobend.Due(cached) != jobend.Due(p) {
				t.Errorf("due %t, and with the cached pod %t", jobend.Due(p), jobend.Due(cached))
			}
			d := jobend.Next(p, tc.virtual, noon)
			var stop []string
			if d.Request != nil {
				for _, c := range d.Request.Spec.Containers {
					stop = append(stop, c.Name)
				}
			}
			if got := strings.Join(stop, " "); got != tc.stop {
				t.Errorf("stops %q, want %q", got, tc.stop)
			}
			if (d.Request != nil) != (tc.stop != "") {
				t.Errorf("request %+v", d.Request)
			}
			if diff := cmp.Diff(tc.images, d.Images); diff != "" {
				t.Errorf("images (-want +got):\n%s", diff)
			}
			if nothing := tc.stop == "" && tc.images == nil; (d.Status == nil) != nothing || jobend.Due(p) == (nothing && !tc.virtual) {
				t.Errorf("marked %v, due %t", d.Status, jobend.Due(p))
			}
		})
	}
}

// The request equals the one of OpenKruise's SidecarTerminator, so that either may create it. It expires, so that an
// unsuccessful one is replaced.
func TestTheRequestIsNamedAfterThePod(t *testing.T) {
	t.Parallel()
	p := pod(t, "Never", [3]string{1: stopped, 2: stopped}, [3]string{done, running, running})
	d := jobend.Next(p, false, noon)
	r := d.Request
	if diff := cmp.Diff(map[string]string{"refit.dev/reason": "the main containers of the pod have ended"}, r.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "job", UID: "u1"}}, r.OwnerReferences); diff != "" {
		t.Errorf("owner (-want +got):\n%s", diff)
	}
	if r.Namespace != "shop" || r.Name != "sidecar-termination-u1" {
		t.Errorf("got %+v", r.ObjectMeta)
	}
	if s := r.Spec; s.PodName != "job" || !s.Strategy.ForceRecreate || s.Strategy.FailurePolicy != "Ignore" || s.ActiveDeadlineSeconds != nil || *s.TTLSecondsAfterFinished != 60 {
		t.Errorf("got %+v", s)
	}
	mark := d.Status.Conditions[len(d.Status.Conditions)-1]
	if mark.Type != "SidecarTerminated" || mark.Status != corev1.ConditionTrue || !mark.LastTransitionTime.Time.Equal(noon) {
		t.Errorf("got %+v", mark)
	}
	p.Status = *d.Status
	if d := jobend.Next(p, false, noon); d.Status != nil || d.Request == nil {
		t.Errorf("marked again: %+v", d)
	}
}

// A condition of that type that is not True says nothing, whoever has written it.
func TestAPodWhoseConditionIsFalseIsMarked(t *testing.T) {
	t.Parallel()
	p := pod(t, "Never", [3]string{1: stopped, 2: stopped}, [3]string{done, running, running})
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "SidecarTerminated", Status: corev1.ConditionFalse})
	d := jobend.Next(p, false, noon)
	if d.Status == nil {
		t.Fatal("not marked")
	}
	if marks := slices.DeleteFunc(d.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type != "SidecarTerminated" }); len(marks) != 1 || marks[0].Status != corev1.ConditionTrue {
		t.Errorf("marked with %+v", marks)
	}
}

func TestOnlyImagesAreReplaced(t *testing.T) {
	t.Parallel()
	p := pod(t, "Never", [3]string{1: replaced, 2: stopped}, [3]string{done, running, running})
	want := p.DeepCopy()
	want.Spec.Containers[1].Image = "exit:1"
	if diff := cmp.Diff(want, jobend.Replace(p, map[string]string{"mesh": "exit:1"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if p.Spec.Containers[1].Image != "mesh:1" {
		t.Error("the pod itself was changed")
	}
}

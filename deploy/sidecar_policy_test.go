package deploy_test

import (
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/admission"
)

func TestManagerMayChangeOnlyInjectedContainers(t *testing.T) {
	t.Parallel()
	pods := shipped(t, "manager/*.yaml", "refit-manager-pods")
	const before = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","annotations":{"kruise.io/sidecarset-hash":"old"}},"spec":{
		"initContainers":[{"name":"setup","image":"setup:1"},{"name":"mesh","image":"mesh:1","restartPolicy":"Always","env":[{"name":"IS_INJECTED","value":"true"}]}],
		"containers":[{"name":"app","image":"app:1","env":[{"name":"A"}],"resources":{"requests":{"cpu":"1"}}},
		{"name":"batch","image":"batch:1","env":[{"name":"KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE","value":"exit:1"}],"resources":{"requests":{"cpu":"4"}}},
		{"name":"log","image":"log:1","env":[{"name":"IS_INJECTED","value":"true"}],"resources":{"requests":{"cpu":"2"}}}]},"status":{"phase":"Running"}}`
	with := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(before) }
	eviction := `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"web"}}`
	for name, tc := range map[string]struct {
		review review
		want   string // part of the refusal; empty: allowed
	}{
		"image of a sidecar":                {review: review{object: with("log:1", "log:2", `"old"`, `"new","version.sidecarset.kruise.io/log":"3"`)}},
		"image of a native sidecar":         {review: review{object: with("mesh:1", "mesh:2")}},
		"resources of a sidecar":            {review: review{subresource: "resize", object: with(`"cpu":"2"`, `"cpu":"3"`)}},
		"the image by which one ends":       {review: review{object: with("batch:1", "exit:1")}},
		"another image for its end":         {review: review{object: with("batch:1", "batch:2")}, want: "containers that SidecarSets have injected"},
		"its image and resources":           {review: review{object: with("batch:1", "exit:1", `"cpu":"4"`, `"cpu":"5"`)}, want: "containers that SidecarSets have injected"},
		"the image of another's end":        {review: review{object: with("app:1", "exit:1")}, want: "containers that SidecarSets have injected"},
		"eviction":                          {review: review{operation: admission.Create, subresource: "eviction", object: eviction}},
		"image of an application":           {review: review{object: with("app:1", "app:2")}, want: "containers that SidecarSets have injected"},
		"image of an init container":        {review: review{object: with("setup:1", "setup:2")}, want: "containers that SidecarSets have injected"},
		"resources of an application":       {review: review{subresource: "resize", object: with(`"cpu":"1"`, `"cpu":"3"`)}, want: "containers that SidecarSets have injected"},
		"a container that says it is one":   {review: review{object: with("app:1", "app:2", `{"name":"A"}`, `{"name":"IS_INJECTED","value":"true"}`)}, want: "containers that SidecarSets have injected"},
		"tolerations":                       {review: review{object: with(`"spec":{`, `"spec":{"tolerations":[{"operator":"Exists"}],`)}, want: "nothing of a pod's spec but"},
		"deadline":                          {review: review{object: with(`"spec":{`, `"spec":{"activeDeadlineSeconds":1,`)}, want: "nothing of a pod's spec but"},
		"annotations of sidecars by status": {review: review{subresource: "status", object: with(`"old"`, `"new"`)}, want: "reserved"},
		"other annotations of OpenKruise":   {review: review{object: with(`"old"`, `"old","apps.kruise.io/inplace-update-state":"{}"`)}, want: "reserved"},
		"creation":                          {review: review{operation: admission.Create, object: before}, want: "may only update pods"},
		"deletion":                          {review: review{operation: admission.Delete, oldObject: before}, want: "may only update pods"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := tc.review
			r.user = account
			if r.operation == "" {
				r.operation, r.oldObject = admission.Update, before
			}
			if _, refused := pods.evaluate(t, r); (tc.want == "") != (refused == "") || !strings.Contains(refused, tc.want) {
				t.Errorf("refused: %q, want %q", refused, tc.want)
			}
		})
	}
}

func TestSidecarWritesNothingThatKubeletSaysOfItsPod(t *testing.T) {
	t.Parallel()
	const others, own = "of its own only", "may only write the status of that pod"
	pod := func(uid, metadata, status string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","uid":"` + uid + `"` + metadata + `},"spec":{},"status":{"phase":"Running","podIP":"10.0.0.1"` + status + `}}`
	}
	const ready = `{"type":"Ready","status":"False"}`
	before := pod("uid-web", "", `,"conditions":[`+ready+`]`)
	status := func(object string) review {
		return review{pod: "web", name: "web", subresource: "status", oldObject: before, object: object}
	}
	with := func(from, to string) review { return status(strings.Replace(before, from, to, 1)) }
	attempts := map[string]attempt{
		"a label":                {status(pod("uid-web", `,"labels":{"a":"b"}`, `,"conditions":[`+ready+`]`)), ""},
		"a condition":            {with(ready, ready+`,{"type":"a.b/c","status":"True"}`), ""},
		"a condition before it":  {with(ready, `{"type":"a.b/c","status":"True"},`+ready), ""},
		"ready":                  {with(ready, `{"type":"Ready","status":"True"}`), others},
		"ready, and not ready":   {with(ready, `{"type":"Ready","status":"True"},`+ready), others},
		"not ready any more":     {with(ready, ``), others},
		"a new one of kubelet's": {with(ready, ready+`,{"type":"DisruptionTarget","status":"True"}`), others},
		"the end of a drain":     {with(ready, ready+`,{"type":"KruisePodReady","status":"True"}`), others},
		"the end of Jobs":        {with(ready, ready+`,{"type":"SidecarTerminated","status":"True"}`), others},
		"what can be updated":    {with(ready, ready+`,{"type":"SidecarSetUpgradable","status":"True"}`), others},
		"phase":                  {with("Running", "Failed"), others},
		"addresses":              {with(`"podIP"`, `"podIPs":[{"ip":"10.9.9.9"}],"podIP"`), others},
		"a field of the future":  {with(`"podIP"`, `"newField":1,"podIP"`), others},
		"address removed":        {with(`,"podIP":"10.0.0.1"`, ``), others},
		"a finalizer":            {status(pod("uid-web", `,"finalizers":["a.b/c"]`, `,"conditions":[`+ready+`]`)), others},
		"another pod":            {review{pod: "db", name: "web", subresource: "status", oldObject: before, object: before}, own},
		"a pod of the same name": {review{pod: "web", name: "web", subresource: "status", oldObject: pod("uid-2", "", ""), object: pod("uid-2", "", "")}, own},
		"with a token of no pod": {review{name: "web", subresource: "status", oldObject: before, object: before}, own},
		"its spec":               {review{pod: "web", name: "web", oldObject: before, object: before}, own},
		"commands":               {review{pod: "web", name: "web", operation: admission.Connect, subresource: "exec"}, own},
	}
	for name, a := range attempts {
		a.review.user = "system:serviceaccount:games:refit-sidecar"
		attempts[name] = a
	}
	shipped(t, "sidecar/*.yaml", "refit-sidecar-pods").judged(t, attempts)
}

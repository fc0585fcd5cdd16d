package deploy_test

import (
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/admission"
)

// attempt is a write and part of its refusal; empty: allowed.
type attempt struct {
	review review
	want   string
}

// judged evaluates writes of the account that is bound, unless they name another; without an operation they are updates.
func (p policy) judged(t *testing.T, attempts map[string]attempt) {
	t.Helper()
	for name, tc := range attempts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := tc.review
			if r.operation == "" {
				r.operation = admission.Update
			}
			if r.user == "" {
				r.user = account
			}
			if _, refused := p.evaluate(t, r); (tc.want == "") != (refused == "") || !strings.Contains(refused, tc.want) {
				t.Errorf("refused: %q, want %q", refused, tc.want)
			}
		})
	}
}

func requestOf(node, metadata string) string {
	return `{"apiVersion":"apps.kruise.io/v1beta1","kind":"ContainerRecreateRequest","metadata":{"name":"r","labels":{"crr.apps.kruise.io/node-name":"` + node + `"}` +
		metadata + `},"spec":{"podName":"web"}}`
}

func TestDaemonWritesOfRequestsOfItsNodeOnlyStatusAndRecord(t *testing.T) {
	t.Parallel()
	const nothing = "may change nothing of a ContainerRecreateRequest but"
	before := requestOf("a", "")
	mine := func(object string) review { return review{node: "a", oldObject: before, object: object} }
	shipped(t, "daemonset/*.yaml", "refit-daemon-requests").judged(t, map[string]attempt{
		"status of its node":       {review{node: "a", subresource: "status", oldObject: before, object: before}, ""},
		"status of another node":   {review{node: "b", subresource: "status", oldObject: before, object: before}, "may not write a ContainerRecreateRequest of node"},
		"status of no node":        {review{subresource: "status", oldObject: requestOf("", ""), object: requestOf("", "")}, "may not write a ContainerRecreateRequest of node"},
		"record of its node":       {mine(requestOf("a", `,"annotations":{"refit.dev/instances":"{}"}`)), ""},
		"another annotation":       {mine(requestOf("a", `,"annotations":{"refit.dev/reason":"x"}`)), nothing},
		"a label":                  {mine(requestOf("b", "")), nothing},
		"a finalizer":              {mine(requestOf("a", `,"finalizers":["a.b/c"]`)), nothing},
		"an owner":                 {mine(requestOf("a", `,"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"web","uid":"u"}]`)), nothing},
		"the spec":                 {mine(strings.Replace(before, `"podName":"web"`, `"podName":"db"`, 1)), nothing},
		"a new one":                {review{node: "a", operation: admission.Create, object: before}, "may not create or delete"},
		"deletion":                 {review{node: "a", operation: admission.Delete, oldObject: before}, "may not create or delete"},
		"another user":             {review{user: "alice", operation: admission.Create, object: before}, ""},
		"an account of that name":  {review{user: "system:serviceaccount:other:refit-daemon", operation: admission.Create, object: before}, ""},
		"as a pod's own container": {review{pod: "web", subresource: "status", oldObject: before, object: before}, "may not write a ContainerRecreateRequest of node"},
	})
}

// By the record a daemon decides whether the instance that is to be stopped still runs.
func TestRecordOfARequestIsWrittenByDaemonsOnly(t *testing.T) {
	t.Parallel()
	const only = "only refit-daemon may write"
	none, some := requestOf("a", ""), requestOf("a", `,"annotations":{"refit.dev/instances":"{}","team":"a"}`)
	other := strings.Replace(some, `"{}"`, `"{\"app\":\"containerd://x\"}"`, 1)
	shipped(t, "daemonset/*.yaml", "refit-daemon-record").judged(t, map[string]attempt{
		"by a daemon":                     {review{oldObject: none, object: some}, ""},
		"changed by a daemon":             {review{oldObject: some, object: other}, ""},
		"by a user":                       {review{user: "alice", oldObject: none, object: some}, only},
		"changed by a user":               {review{user: "alice", oldObject: some, object: other}, only},
		"removed by a user":               {review{user: "alice", oldObject: some, object: none}, only},
		"by an account of that name":      {review{user: "system:serviceaccount:other:refit-daemon", oldObject: none, object: some}, only},
		"created with it":                 {review{user: "alice", operation: admission.Create, object: some}, only},
		"created without it":              {review{user: "alice", operation: admission.Create, object: none}, ""},
		"another annotation of a request": {review{user: "alice", oldObject: some, object: strings.Replace(some, `"team":"a"`, `"team":"b"`, 1)}, ""},
	})
}

func TestDaemonWritesOfPodsOfItsNodeOnlyTwoAnnotations(t *testing.T) {
	t.Parallel()
	const nothing = "may change nothing of a pod but"
	pod := func(metadata, status string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"` + metadata + `},"spec":{"nodeName":"a"},"status":{` + status + `}}`
	}
	before := pod("", "")
	status := func(node, object string) review {
		return review{node: node, subresource: "status", oldObject: before, object: object}
	}
	nudged := pod(`,"annotations":{"refit.dev/nudge":"now","apps.kruise.io/runtime-containers-meta":"{}"}`, "")
	shipped(t, "daemonset/*.yaml", "refit-daemon-pods").judged(t, map[string]attempt{
		"its annotations":                 {status("a", nudged), ""},
		"a pod of another node":           {status("b", nudged), "may not write a pod of node"},
		"with a token of no node":         {status("", nudged), "may not write a pod of node"},
		"another annotation":              {status("a", pod(`,"annotations":{"a":"b"}`, "")), nothing},
		"a label":                         {status("a", pod(`,"labels":{"a":"b"}`, "")), nothing},
		"a finalizer":                     {status("a", pod(`,"finalizers":["a.b/c"]`, "")), nothing},
		"a condition":                     {status("a", pod("", `"conditions":[{"type":"Ready","status":"True"}]`)), nothing},
		"its annotations, not by status":  {review{node: "a", oldObject: before, object: nudged}, "only write the status"},
		"commands":                        {review{node: "a", operation: admission.Connect, subresource: "exec"}, "only write the status"},
		"deletion":                        {review{node: "a", operation: admission.Delete, oldObject: before}, "only write the status"},
		"another user":                    {review{user: "kubelet", subresource: "status", oldObject: before, object: pod("", `"phase":"Failed"`)}, ""},
		"an account of that name":         {review{user: "system:serviceaccount:other:refit-daemon", oldObject: before, object: nudged}, ""},
		"of another that had annotations": {review{node: "a", subresource: "status", oldObject: pod(`,"annotations":{"a":"b"}`, ""), object: before}, nothing},
	})
}

func TestDaemonWritesOfProbesAndImagesOnlyTheStatusOfItsNode(t *testing.T) {
	t.Parallel()
	for name, resources := range map[string][]string{
		"refit-daemon-probes": {"nodepodprobes", "podprobemarkers"},
		"refit-daemon-images": {"nodeimages", "imagepulljobs", "imagelistpulljobs"},
	} {
		p := shipped(t, "daemonset/*.yaml", name)
		of := func(resource, node, object, subresource string) review {
			return review{node: node, resource: resource, name: object, subresource: subresource, object: `{"kind":"X"}`, oldObject: `{"kind":"X"}`}
		}
		own := resources[0]
		attempts := map[string]attempt{
			"status of its node":      {of(own, "a", "a", "status"), ""},
			"status of another node":  {of(own, "a", "b", "status"), "the refit-daemon of node"},
			"with a token of no node": {of(own, "", "", "status"), "the refit-daemon of node"},
			"the object of its node":  {of(own, "a", "a", ""), "may only write the status of"},
			"deletion":                {review{node: "a", resource: own, name: "a", operation: admission.Delete, oldObject: `{"kind":"X"}`}, "may only write the status of"},
			"another user":            {review{user: "alice", resource: own, name: "b", object: `{"kind":"X"}`, oldObject: `{"kind":"X"}`}, ""},
			"an account of that name": {review{user: "system:serviceaccount:other:refit-daemon", resource: own, name: "b", object: `{"kind":"X"}`, oldObject: `{"kind":"X"}`}, ""},
		}
		for _, other := range resources[1:] {
			attempts["status of "+other] = attempt{of(other, "a", "a", "status"), "may only write the status of"}
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p.judged(t, attempts)
		})
	}
}

func TestDaemonSendsEventsInTheNameOfItsNodeOnly(t *testing.T) {
	t.Parallel()
	events := shipped(t, "daemonset/*.yaml", "refit-daemon-events")
	event := func(host, kind, name string) string {
		return `{"apiVersion":"v1","kind":"Event","metadata":{"name":"e"},"involvedObject":{"kind":"` + kind + `","name":"` + name + `"},
			"source":{"component":"refit-daemon","host":"` + host + `"},"reportingComponent":"refit-daemon","reportingInstance":"` + host + `"}`
	}
	attempts := map[string]attempt{
		"about a pod":                   {review: review{node: "a", object: event("a", "Pod", "web")}},
		"about its node":                {review: review{node: "a", object: event("a", "Node", "a")}},
		"about its probes":              {review: review{node: "a", object: event("a", "NodePodProbe", "a")}},
		"about its images":              {review: review{node: "a", object: event("a", "NodeImage", "a")}},
		"counted":                       {review: review{node: "a", operation: admission.Update, object: event("a", "Pod", "web"), oldObject: event("a", "Pod", "web")}},
		"another user":                  {review: review{user: "kubelet", object: event("b", "Pod", "web")}},
		"in the name of another":        {review: review{node: "a", object: event("b", "Pod", "web")}, want: "in the name of node"},
		"reported by another":           {review: review{node: "a", object: strings.Replace(event("a", "Pod", "web"), `"reportingInstance":"a"`, `"reportingInstance":"b"`, 1)}, want: "in the name of node"},
		"from another host":             {review: review{node: "a", object: strings.Replace(event("a", "Pod", "web"), `"host":"a"`, `"host":"b"`, 1)}, want: "in the name of node"},
		"about another's probes":        {review: review{node: "a", object: event("a", "NodePodProbe", "b")}, want: "about another node"},
		"about another's images":        {review: review{node: "a", object: event("a", "NodeImage", "b")}, want: "about another node"},
		"about another node":            {review: review{node: "a", object: event("a", "Node", "b")}, want: "about another node"},
		"changing the event of another": {review: review{node: "a", operation: admission.Update, object: event("a", "Pod", "web"), oldObject: event("b", "Pod", "web")}, want: "another node"},
		"with a token of no node":       {review: review{object: event("", "Pod", "web")}, want: "in the name of node"},
		"deleting one":                  {review: review{node: "a", operation: admission.Delete, oldObject: event("a", "Pod", "web")}, want: "may not delete"},
	}
	for name, a := range attempts {
		if a.review.operation == "" {
			a.review.operation = admission.Create
			attempts[name] = a
		}
	}
	events.judged(t, attempts)
}

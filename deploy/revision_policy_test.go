package deploy_test

import (
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/admission"
)

func TestManagerWritesOnlyRevisionsOfSidecarSets(t *testing.T) {
	t.Parallel()
	revisions := shipped(t, "manager/*.yaml", "refit-manager-revisions")
	revision := func(name, kind, owner, label, image string) string {
		return `{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"` + name + `","labels":{"kruise.io/sidecarset-name":"` + label + `"},` +
			`"ownerReferences":[{"apiVersion":"apps.kruise.io/v1beta1","kind":"` + kind + `","name":"` + owner + `","uid":"u","controller":true}]},` +
			`"data":{"spec":{"containers":[{"name":"log","image":"` + image + `"}]}},"revision":2}`
	}
	ours := revision("log-5d7f", "SidecarSet", "log", "log", "log:1")
	daemons := strings.Replace(revision("refit-daemon-5d7f", "DaemonSet", "refit-daemon", "", "evil"), "apps.kruise.io/v1beta1", "apps/v1", 1)
	long := strings.Repeat("l", 240)
	for name, tc := range map[string]struct {
		user        string
		operation   admission.Operation
		before, now string
		refused     bool
	}{
		"create its own":                      {operation: admission.Create, now: ours},
		"create its own, of a long name":      {operation: admission.Create, now: revision(long[:223]+"-5d7f", "SidecarSet", long, long, "log:1")},
		"create one for refit-daemon":         {operation: admission.Create, now: daemons, refused: true},
		"create one of refit-daemon's name":   {operation: admission.Create, now: revision("refit-daemon-5d7f", "SidecarSet", "log", "log", "log:1"), refused: true},
		"create one without an owner":         {operation: admission.Create, now: `{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"log-5d7f"},"revision":2}`, refused: true},
		"create one with the label of others": {operation: admission.Create, now: revision("log-5d7f", "SidecarSet", "log", "mesh", "log:1"), refused: true},
		"create one with two owners": {operation: admission.Create, refused: true, now: strings.Replace(ours, `"ownerReferences":[`,
			`"ownerReferences":[{"apiVersion":"apps/v1","kind":"DaemonSet","name":"refit-daemon","uid":"d"},`, 1)},
		"number":                  {operation: admission.Update, before: ours, now: strings.Replace(ours, `"revision":2`, `"revision":3`, 1)},
		"containers":              {operation: admission.Update, before: ours, now: strings.Replace(ours, "log:1", "evil", 1), refused: true},
		"owner":                   {operation: admission.Update, before: ours, now: strings.Replace(ours, `"uid":"u"`, `"uid":"v"`, 1), refused: true},
		"SidecarSet":              {operation: admission.Update, before: ours, now: strings.Replace(ours, `-name":"log"`, `-name":"mesh"`, 1), refused: true},
		"number of refit-daemon":  {operation: admission.Update, before: daemons, now: strings.Replace(daemons, `"revision":2`, `"revision":3`, 1), refused: true},
		"delete its own":          {operation: admission.Delete, before: ours},
		"delete refit-daemon's":   {operation: admission.Delete, before: daemons, refused: true},
		"somebody else, anything": {user: "alice", operation: admission.Create, now: daemons},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := review{user: tc.user, operation: tc.operation, object: tc.now, oldObject: tc.before}
			if r.user == "" {
				r.user = account
			}
			if _, refused := revisions.evaluate(t, r); (refused != "") != tc.refused {
				t.Errorf("refused: %q", refused)
			}
		})
	}
}

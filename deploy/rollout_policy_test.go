package deploy_test

import (
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/admission"
)

func TestManagerCreatesOnlyRequestsOfRollouts(t *testing.T) {
	t.Parallel()
	requests := shipped(t, "manager/*.yaml", "refit-manager-requests")
	const owner = `"ownerReferences":[{"apiVersion":"refit.dev/v1alpha1","kind":"RestartRollout","name":"web","uid":"u","controller":true}]`
	request := func(name, metadata string) string {
		return `{"apiVersion":"apps.kruise.io/v1beta1","kind":"ContainerRecreateRequest","metadata":{"name":"` + name + `",` + metadata + `},"spec":{"podName":"web-0"}}`
	}
	const ofPod = `"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"web-0","uid":"u"}]`
	const label = `"labels":{"refit.dev/rollout-uid":"u"},`
	for name, tc := range map[string]struct {
		user, object string
		refused      bool
	}{
		"of a rollout":              {object: request("web-1", label+owner)},
		"of a policy":               {object: request("web-1", strings.Replace(owner, "RestartRollout", "InPlaceUpdatePolicy", 1))},
		"named as of no policy":     {object: request("db-1", strings.Replace(owner, "RestartRollout", "InPlaceUpdatePolicy", 1)), refused: true},
		"of a Job's pod":            {object: request("sidecar-termination-u", ofPod)},
		"of another pod":            {object: request("sidecar-termination-v", ofPod), refused: true},
		"for another pod":           {object: request("sidecar-termination-u", strings.Replace(ofPod, "web-0", "web-1", 1)), refused: true},
		"of a user":                 {user: "alice", object: request("r", `"labels":{}`)},
		"of nobody":                 {object: request("web-1", `"labels":{}`), refused: true},
		"of another kind":           {object: request("web-1", label+strings.Replace(owner, "RestartRollout", "Pod", 1)), refused: true},
		"of another group":          {object: request("web-1", label+strings.Replace(owner, "refit.dev", "v1", 1)), refused: true},
		"without the label":         {object: request("web-1", owner), refused: true},
		"not controlled by it":      {object: request("web-1", label+strings.Replace(owner, "true", "false", 1)), refused: true},
		"named as of no rollout":    {object: request("db-1", label+owner), refused: true},
		"with the label of another": {object: request("web-1", strings.Replace(label, `"u"`, `"v"`, 1)+owner), refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := review{user: tc.user, operation: admission.Create, object: tc.object}
			if r.user == "" {
				r.user = account
			}
			if _, refused := requests.evaluate(t, r); (refused != "") != tc.refused {
				t.Errorf("refused: %q", refused)
			}
		})
	}
}

func TestManagerCreatesOnlyRolloutsOfSchedulesAndTriggers(t *testing.T) {
	t.Parallel()
	rollouts := shipped(t, "manager/*.yaml", "refit-manager-rollouts")
	rollout := func(name, kind, owner, trigger string) string {
		return `{"apiVersion":"refit.dev/v1alpha1","kind":"RestartRollout","metadata":{"name":"` + name + `","annotations":{"refit.dev/trigger":"` + trigger + `"},` +
			`"ownerReferences":[{"apiVersion":"refit.dev/v1alpha1","kind":"` + kind + `","name":"` + owner + `","uid":"u","controller":true}]},` +
			`"spec":{"containers":[{"name":"app"}],"targetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}}}`
	}
	ofTrigger := rollout("web-1", "RestartTrigger", "deployment-web", "ConfigMap/settings")
	for name, tc := range map[string]struct {
		user, object string
		refused      bool
	}{
		"of a schedule":          {object: rollout("nightly-1", "RestartSchedule", "nightly", "RestartSchedule/nightly")},
		"of a ConfigMap":         {object: ofTrigger},
		"of a Secret":            {object: rollout("web-1", "RestartTrigger", "deployment-web", "Secret/tls")},
		"of a user":              {user: "alice", object: rollout("web", "Pod", "web", "")},
		"of nobody":              {object: rollout("web-1", "Pod", "web", "ConfigMap/settings"), refused: true},
		"not controlled by it":   {object: strings.Replace(ofTrigger, `"controller":true`, `"controller":false`, 1), refused: true},
		"of another group":       {object: strings.Replace(ofTrigger, `[{"apiVersion":"refit.dev/v1alpha1"`, `[{"apiVersion":"v1"`, 1), refused: true},
		"trigger not named":      {object: rollout("nightly-1", "RestartSchedule", "nightly", ""), refused: true},
		"name of another":        {object: rollout("web-1", "RestartSchedule", "nightly", "RestartSchedule/nightly"), refused: true},
		"trigger of another":     {object: rollout("nightly-1", "RestartSchedule", "nightly", "ConfigMap/settings"), refused: true},
		"workload of other kind": {object: strings.Replace(ofTrigger, `"kind":"Deployment"`, `"kind":"DaemonSet"`, 1), refused: true},
		"pods by selector":       {object: strings.Replace(ofTrigger, `"targetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}`, `"selector":{}`, 1), refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := review{user: tc.user, operation: admission.Create, object: tc.object}
			if r.user == "" {
				r.user = account
			}
			if _, refused := rollouts.evaluate(t, r); (refused != "") != tc.refused {
				t.Errorf("refused: %q", refused)
			}
		})
	}
}

func TestManagerChangesOnlyTheRecordOfTheEndOfARollout(t *testing.T) {
	t.Parallel()
	rollouts := shipped(t, "manager/*.yaml", "refit-manager-rollouts")
	rollout := func(annotations, labels, paused string) string {
		return `{"apiVersion":"refit.dev/v1alpha1","kind":"RestartRollout","metadata":{"name":"web","annotations":{` + annotations + `},"labels":{` + labels + `}},` +
			`"spec":{"containers":[{"name":"app"}],"paused":` + paused + `,"targetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}}}`
	}
	const reason, finished = `"refit.dev/reason":"leak"`, `"refit.dev/finished":"{}"`
	before := rollout(reason, "", "true")
	for name, tc := range map[string]struct {
		user, object, old string
		refused           bool
	}{
		"the record":            {object: rollout(reason+","+finished, "", "true"), old: before},
		"the first annotation":  {object: rollout(finished, "", "true"), old: rollout("", "", "true")},
		"the spec":              {object: rollout(reason+","+finished, "", "false"), old: before, refused: true},
		"another annotation":    {object: rollout(`"refit.dev/reason":"none"`, "", "true"), old: before, refused: true},
		"one annotation more":   {object: rollout(reason+`,"a":"b"`, "", "true"), old: before, refused: true},
		"an annotation is lost": {object: rollout(finished, "", "true"), old: before, refused: true},
		"labels":                {object: rollout(reason, `"a":"b"`, "true"), old: before, refused: true},
		"the spec, by a user":   {user: "alice", object: rollout(reason, "", "false"), old: before},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := review{user: tc.user, operation: admission.Update, object: tc.object, oldObject: tc.old}
			if r.user == "" {
				r.user = account
			}
			if _, refused := rollouts.evaluate(t, r); (refused != "") != tc.refused {
				t.Errorf("refused: %q", refused)
			}
		})
	}
}

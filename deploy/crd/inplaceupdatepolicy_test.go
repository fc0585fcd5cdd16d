package crd_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
)

const validPolicy = `{apiVersion: refit.dev/v1alpha1, kind: InPlaceUpdatePolicy, metadata: {name: web},
	spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxUnavailable: 1, steps: [{pods: 1, pause: {}}, {pods: 50%}]}}`

func TestRulesOfInPlaceUpdatePolicies(t *testing.T) {
	t.Parallel()
	compiled := compile(t, readFile(t, "refit.dev_inplaceupdatepolicies.yaml"), "v1alpha1")
	const steps = "steps: [{pods: 1, pause: {}}, {pods: 50%}]"
	for name, tc := range map[string]struct {
		old, to string
		update  bool
		want    []string
	}{
		"valid":                       {},
		"valid update":                {update: true},
		"a StatefulSet":               {old: "kind: Deployment", to: "kind: StatefulSet"},
		"a DaemonSet":                 {old: "kind: Deployment", to: "kind: DaemonSet"},
		"a ReplicaSet":                {old: "kind: Deployment", to: "kind: ReplicaSet", want: []string{"spec.targetRef", "must be a Deployment, StatefulSet or DaemonSet of apps/v1"}},
		"a CloneSet":                  {old: "apps/v1, kind: Deployment", to: "apps.kruise.io/v1alpha1, kind: CloneSet", want: []string{"spec.targetRef"}},
		"another target":              {old: "name: web}, max", to: "name: db}, max", update: true, want: []string{"spec.targetRef", "cannot be changed"}},
		"steps and partition":         {old: "maxUnavailable: 1", to: "partition: 1", want: []string{"steps and partition exclude each other"}},
		"partition without steps":     {old: steps, to: "partition: 50%"},
		"a step of no pods":           {old: "pods: 1,", to: "pods: 0,", want: []string{"spec.steps[0].pods"}},
		"a step of 0 %":               {old: "50%", to: "0%", want: []string{"spec.steps[1].pods"}},
		"a step that is no number":    {old: "50%", to: "half", want: []string{"spec.steps[1].pods"}},
		"a negative pause":            {old: "pause: {}", to: "pause: {seconds: -1}", want: []string{"spec.steps[0].pause.seconds"}},
		"more than 16 steps":          {old: steps, to: "steps: [" + strings.Repeat("{pods: 1},", 17) + "]", want: []string{"spec.steps"}},
		"maxUnavailable 0":            {old: "maxUnavailable: 1", to: "maxUnavailable: 0", want: []string{"spec.maxUnavailable"}},
		"an unknown failurePolicy":    {old: "maxUnavailable: 1", to: "failurePolicy: Stop", want: []string{"spec.failurePolicy"}},
		"an unknown prePullPolicy":    {old: "maxUnavailable: 1", to: "prePullPolicy: Sometimes", want: []string{"spec.prePullPolicy"}},
		"an unknown podUpdatePolicy":  {old: "maxUnavailable: 1", to: "podUpdatePolicy: ReCreate", want: []string{"spec.podUpdatePolicy"}},
		"a promotion without a step":  {old: "maxUnavailable: 1", to: "promoted: {revision: a}", want: []string{"spec.promoted.step", "Required"}},
		"pace changed":                {old: "maxUnavailable: 1", to: "maxUnavailable: 25%, paused: true", update: true},
		"a name of 201 characters":    {old: "metadata: {name: web}", to: "metadata: {name: " + strings.Repeat("a", 201) + "}", want: []string{"at most 200"}},
		"a drain of more than a day":  {old: "maxUnavailable: 1", to: "drainSeconds: 86401", want: []string{"spec.drainSeconds"}},
		"an unknown holdPolicy":       {old: "maxUnavailable: 1", to: "holdPolicy: Never", want: []string{"spec.holdPolicy"}},
		"an unknown deletionPolicy":   {old: "maxUnavailable: 1", to: "deletionPolicy: Orphan", want: []string{"spec.deletionPolicy"}},
		"an unknown order of pods":    {old: "maxUnavailable: 1", to: "podOrder: Random", want: []string{"spec.podOrder"}},
		"a negative deadline":         {old: "maxUnavailable: 1", to: "progressDeadlineSeconds: 0", want: []string{"spec.progressDeadlineSeconds"}},
		"budgets that are not obeyed": {old: "maxUnavailable: 1", to: "podDisruptionBudgetPolicy: Ignore"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			edited(t, compiled, validPolicy, tc.old, tc.to, tc.update, tc.want)
		})
	}
}

func TestInPlaceUpdatePoliciesAreStoredWithTheirDefaults(t *testing.T) {
	t.Parallel()
	compiled := compile(t, readFile(t, "refit.dev_inplaceupdatepolicies.yaml"), "v1alpha1")
	object := decode(t, "{spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}")
	defaulting.Default(object, compiled.structural)
	want := decode(t, `{spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxUnavailable: 1, progressDeadlineSeconds: 600,
		podDisruptionBudgetPolicy: Respect, podUpdatePolicy: InPlaceIfPossible, podOrder: Default, prePullPolicy: Always, failurePolicy: Pause, holdPolicy: WhileUpdating,
		deletionPolicy: Finish}}`)
	if diff := cmp.Diff(want, object); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

package crd_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
)

const (
	workloadOfRollout = "targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}"
	containersOf      = "containers: [{name: app}, {name: log}]"
	validRollout      = "{metadata: {name: web}, spec: {" + workloadOfRollout + ", " + containersOf + ", maxUnavailable: 1, failurePolicy: Stop, pod: {containerOrder: Stopped}}}"
)

func TestRulesOfRestartRollouts(t *testing.T) {
	t.Parallel()
	compiled := compile(t, readFile(t, "refit.dev_restartrollouts.yaml"), "v1alpha1")
	for name, tc := range map[string]struct {
		old, to string
		update  bool
		want    []string
	}{
		"valid":                                {},
		"valid update":                         {update: true},
		"labels":                               {old: workloadOfRollout, to: "selector: {matchLabels: {app: web}}"},
		"an expression":                        {old: workloadOfRollout, to: "selector: {matchExpressions: [{key: app, operator: Exists}]}"},
		"an empty selector":                    {old: workloadOfRollout, to: "selector: {}", want: []string{"spec.selector", "must not be empty"}},
		"a selector with empty labels":         {old: workloadOfRollout, to: "selector: {matchLabels: {}}", want: []string{"spec.selector", "must not be empty"}},
		"neither workload nor selector":        {old: workloadOfRollout, to: "paused: true", want: []string{"exactly one of targetRef and selector"}},
		"workload and selector":                {old: workloadOfRollout, to: workloadOfRollout + ", selector: {matchLabels: {app: web}}", want: []string{"exactly one of targetRef and selector"}},
		"a later version of a workload":        {old: "apps/v1", to: "apps/v2beta1"},
		"a kind of another group":              {old: "apps/v1", to: "apps.example.com/v1", want: []string{"spec.targetRef.apiVersion"}},
		"a kind that OpenKruise does not have": {old: "apps/v1", to: "apps.kruise.io/v1", want: []string{"must be a Deployment, ReplicaSet"}},
		"a CloneSet":                           {old: "apps/v1, kind: Deployment", to: "apps.kruise.io/v1alpha1, kind: CloneSet"},
		"no containers":                        {old: containersOf, to: "containers: []", want: []string{"spec.containers"}},
		"a container twice":                    {old: "name: log", to: "name: app", want: []string{"spec.containers[1]", "Duplicate"}},
		"a container without a name":           {old: "name: log", to: `name: ""`, want: []string{"spec.containers[1].name"}},
		"maxUnavailable 0":                     {old: "maxUnavailable: 1", to: "maxUnavailable: 0", want: []string{"spec.maxUnavailable"}},
		"partition in percent":                 {old: "maxUnavailable: 1", to: "partition: 50%"},
		"negative partition":                   {old: "maxUnavailable: 1", to: "partition: -1", want: []string{"spec.partition"}},
		"partition of more than all":           {old: "maxUnavailable: 1", to: "partition: 101%", want: []string{"spec.partition"}},
		"a drain of more than a day":           {old: "maxUnavailable: 1", to: "drainSeconds: 86401", want: []string{"spec.drainSeconds"}},
		"an unknown policy":                    {old: "maxUnavailable: 1", to: "podDisruptionBudgetPolicy: Never", want: []string{"spec.podDisruptionBudgetPolicy"}},
		"an unknown order":                     {old: "containerOrder: Stopped", to: "containerOrder: Random", want: []string{"spec.pod.containerOrder"}},

		"maxUnavailable changed":        {old: "maxUnavailable: 1", to: "maxUnavailable: 2", update: true},
		"partition set":                 {old: "maxUnavailable: 1", to: "partition: 1", update: true},
		"minReadySeconds set":           {old: "maxUnavailable: 1", to: "minReadySeconds: 1", update: true},
		"paused":                        {old: "maxUnavailable: 1", to: "paused: true", update: true},
		"deadlines and TTL set":         {old: "maxUnavailable: 1", to: "activeDeadlineSeconds: 60, progressDeadlineSeconds: 60, ttlSecondsAfterFinished: 60", update: true},
		"budgets ignored":               {old: "maxUnavailable: 1", to: "podDisruptionBudgetPolicy: Ignore", update: true},
		"version of the target":         {old: "apps/v1", to: "apps/v2", update: true},
		"group of the target":           {old: "apps/v1, kind: Deployment", to: "apps.kruise.io/v1alpha1, kind: CloneSet", update: true, want: []string{"spec.targetRef", "cannot be changed"}},
		"name of the target":            {old: "name: web}, containers", to: "name: db}, containers", update: true, want: []string{"spec.targetRef", "cannot be changed"}},
		"a selector instead":            {old: workloadOfRollout, to: "selector: {matchLabels: {app: web}}", update: true, want: []string{"spec.targetRef", "spec.selector"}},
		"another container":             {old: "name: log", to: "name: db", update: true, want: []string{"spec.containers", "cannot be changed"}},
		"order of the containers":       {old: containersOf, to: "containers: [{name: log}, {name: app}]", update: true, want: []string{"spec.containers", "not even their order"}},
		"a drain set":                   {old: "maxUnavailable: 1", to: "drainSeconds: 5", update: true, want: []string{"spec.drainSeconds", "cannot be changed"}},
		"failurePolicy changed":         {old: "failurePolicy: Stop", to: "failurePolicy: Continue", update: true, want: []string{"spec.failurePolicy", "cannot be changed"}},
		"containerOrder changed":        {old: "containerOrder: Stopped", to: "containerOrder: Ready", update: true, want: []string{"spec.pod", "cannot be changed"}},
		"a grace period of pods set":    {old: "containerOrder: Stopped", to: "containerOrder: Stopped, terminationGracePeriodSeconds: 1", update: true, want: []string{"spec.pod", "cannot be changed"}},
		"a name of more than 200 bytes": {old: "metadata: {name: web}", to: "metadata: {name: " + strings.Repeat("a", 201) + "}", want: []string{"at most 200"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			edited(t, compiled, validRollout, tc.old, tc.to, tc.update, tc.want)
		})
	}
}

// edited validates a valid object of which a part is replaced. With update, the valid object is the one before.
func edited(t *testing.T, compiled rules, valid, old, to string, update bool, want []string) {
	t.Helper()
	if !strings.Contains(valid, old) {
		t.Fatalf("no %q in the valid object", old)
	}
	var before map[string]any
	if update {
		before = decode(t, valid)
	}
	refused(t, compiled.validate(t, decode(t, strings.Replace(valid, old, to, 1)), before), want...)
}

// A default that only programs know changes the meaning of stored objects when it changes.
func TestRestartRolloutsAreStoredWithTheirDefaults(t *testing.T) {
	t.Parallel()
	compiled := compile(t, readFile(t, "refit.dev_restartrollouts.yaml"), "v1alpha1")
	object := decode(t, "{spec: {"+workloadOfRollout+", "+containersOf+"}}")
	defaulting.Default(object, compiled.structural)
	want := decode(t, "{spec: {"+workloadOfRollout+", "+containersOf+`, maxUnavailable: 1, progressDeadlineSeconds: 600,
		podDisruptionBudgetPolicy: Respect, failurePolicy: Stop, pod: {containerOrder: Stopped, activeDeadlineSeconds: 600}}}`)
	if diff := cmp.Diff(want, object); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

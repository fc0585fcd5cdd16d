package jobplan_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/image/entry"
	"github.com/refit-project/refit/image/jobplan"
)

// A job that is created again and again for the image of another job takes nothing from it, whose job ever it is.
func TestLaterJobDoesNotChangeTheOutcomeOfAnEarlierOne(t *testing.T) {
	t.Parallel()
	for _, namespace := range []string{"shop", "mallory"} {
		t.Run(namespace, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 2, job(func(j *v1beta1.ImagePullJob) { j.Spec.Parallelism = nil }))
			first := c.job
			c.look()
			c.answer(v1beta1.ImagePhaseSucceeded, "")         // on the first node
			first.Spec.Parallelism = new(intstr.FromInt32(0)) // the second is to come
			for i := range 3 {
				c.job = job(func(j *v1beta1.ImagePullJob) {
					j.Namespace, j.UID, j.Spec.Parallelism = namespace, types.UID(fmt.Sprint("hasty", i)), nil
					j.Spec.ImagePullPolicy, j.Spec.PullPolicy = v1beta1.PullAlways, &v1beta1.PullPolicy{TimeoutSeconds: new(int32(1)), BackoffLimit: new(int32(0))}
				})
				hasty := c.job
				c.look()
				c.answer(v1beta1.ImagePhaseFailed, "not pulled within timeoutSeconds")
				c.job = first
				if c.look(); first.Status.Failed != 0 || first.Status.Succeeded == 0 {
					t.Fatalf("the earlier job: %+v", first.Status)
				}
				c.job = hasty
				if c.look(); hasty.Status.Failed != 1 {
					t.Errorf("the later job: %+v", hasty.Status)
				}
			}
			c.job = first
			first.Spec.Parallelism = nil
			c.look()
			c.answer(v1beta1.ImagePhaseSucceeded, "")
			if c.look(); !meta.IsStatusConditionTrue(first.Status.Conditions, "Complete") {
				t.Errorf("the earlier job: %+v", first.Status)
			}
		})
	}
}

// If the node has the image for one namespace, that is no outcome for a job of another one, which waits for its own pull.
func TestOutcomeForOneNamespaceIsNoneForAnother(t *testing.T) {
	t.Parallel()
	node := &v1beta1.NodeImage{}
	node.Name = "n"
	mine, theirs := job(), job(func(j *v1beta1.ImagePullJob) { j.Namespace, j.UID = "mallory", "theirs" })
	for _, j := range []*v1beta1.ImagePullJob{mine, theirs} {
		entry.Request(node, j, nil, now)
	}
	phases := map[string]v1beta1.ImagePullPhase{"shop": v1beta1.ImagePhaseSucceeded}
	said := func() string {
		states := map[image.Target]image.State{}
		for _, w := range image.Wanted(node.Spec) {
			if phase, ok := phases[w.Namespace]; ok {
				states[w.Target] = image.State{Phase: phase, Completed: now}
			}
		}
		node.Status = image.Status(node.Spec, states)
		text := ""
		for _, j := range []*v1beta1.ImagePullJob{mine, theirs} {
			s := jobplan.Job(j, []*v1beta1.NodeImage{node}, now).Status
			text += fmt.Sprintf("%d active %d succeeded %d failed;", s.Active, s.Succeeded, s.Failed)
		}
		return text
	}
	if got := said(); got != "0 active 1 succeeded 0 failed;1 active 0 succeeded 0 failed;" {
		t.Errorf("%s", got)
	}
	phases["mallory"] = v1beta1.ImagePhaseFailed
	if got := said(); got != "0 active 1 succeeded 0 failed;0 active 0 succeeded 1 failed;" {
		t.Errorf("%s", got)
	}
	// OpenKruise's CRD drops what is by namespace: then a tag has failed if it has for any.
	for i := range node.Status.ImageStatuses["game"].Tags {
		node.Status.ImageStatuses["game"].Tags[i].Namespaces = nil
	}
	node.Spec.Images["game"].Tags[0].Namespaces = nil
	for _, j := range []*v1beta1.ImagePullJob{mine, theirs} {
		if s := jobplan.Job(j, []*v1beta1.NodeImage{node}, now).Status; s.Failed != 1 {
			t.Errorf("without namespaces: %+v", s)
		}
	}
}

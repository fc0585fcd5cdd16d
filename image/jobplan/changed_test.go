package jobplan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/image/entry"
	"github.com/refit-project/refit/image/jobplan"
)

// ofTwoImages is a NodeImage with jobs a and b for one image, and c for another.
func ofTwoImages() *v1beta1.NodeImage {
	node := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"pool": "game"}}}
	for name, of := range map[string]string{"a": "game:v1", "b": "game:v1", "c": "other:v1"} {
		j := job(func(j *v1beta1.ImagePullJob) { j.Name, j.UID, j.Spec.Image = name, types.UID(name), of })
		entry.Request(node, j, nil, now)
	}
	node.Status = image.Status(node.Spec, nil)
	return node
}

// Only the jobs that are affected by a change of a NodeImage are enqueued: otherwise each report of each pull would
// enqueue a thousand jobs.
func TestWhomAChangeOfANodeImageMattersTo(t *testing.T) {
	t.Parallel()
	alter := func(n *v1beta1.NodeImage, repository string, change func(*v1beta1.ImageTagSpec)) {
		change(&n.Spec.Images[repository].Tags[0])
	}
	for name, tc := range map[string]struct {
		change func(*v1beta1.NodeImage)
		owners []string
		others bool
	}{
		"nothing":    {change: func(*v1beta1.NodeImage) {}},
		"labels":     {change: func(n *v1beta1.NodeImage) { n.Labels["pool"] = "shop" }, others: true},
		"deleted":    {change: func(n *v1beta1.NodeImage) { n.DeletionTimestamp = new(metav1.Unix(1, 0)) }, others: true},
		"bytes":      {change: func(n *v1beta1.NodeImage) { n.Status.ImageStatuses["other"].Tags[0].PulledBytes = 7 }},
		"all bytes":  {change: func(n *v1beta1.NodeImage) { n.Status.ImageStatuses["other"].Tags[0].TotalBytes = 7 }},
		"a progress": {change: func(n *v1beta1.NodeImage) { n.Status.ImageStatuses["other"].Tags[0].Progress = 7 }},
		"a message": {change: func(n *v1beta1.NodeImage) {
			n.Status.ImageStatuses["other"].Tags[0].Message = "404"
		}, owners: []string{"c"}},
		"a phase": {change: func(n *v1beta1.NodeImage) {
			n.Status.ImageStatuses["other"].Tags[0].Phase = v1beta1.ImagePhasePulling
		}, owners: []string{"c"}},
		"a phase of two jobs": {change: func(n *v1beta1.NodeImage) {
			n.Status.ImageStatuses["game"].Tags[0].Namespaces[0].Phase = v1beta1.ImagePhasePulling
		}, owners: []string{"a", "b"}},
		"no status": {change: func(n *v1beta1.NodeImage) { n.Status = v1beta1.NodeImageStatus{} }, owners: []string{"a", "b", "c"}},
		"a version": {change: func(n *v1beta1.NodeImage) {
			alter(n, "other", func(tag *v1beta1.ImageTagSpec) { tag.Version++ })
		}, owners: []string{"c"}},
		"one more job": {change: func(n *v1beta1.NodeImage) {
			alter(n, "other", func(tag *v1beta1.ImageTagSpec) {
				tag.OwnerReferences = append(tag.OwnerReferences, corev1.ObjectReference{Namespace: "shop", Name: "d", UID: "d"})
			})
		}, owners: []string{"c", "d"}},
		"one job for another": {change: func(n *v1beta1.NodeImage) {
			alter(n, "other", func(tag *v1beta1.ImageTagSpec) {
				tag.OwnerReferences = []corev1.ObjectReference{{Namespace: "shop", Name: "d", UID: "d"}}
			})
		}, owners: []string{"c", "d"}},
		"a version, and another node": {change: func(n *v1beta1.NodeImage) {
			n.Labels["pool"] = "shop"
			alter(n, "other", func(tag *v1beta1.ImageTagSpec) { tag.Version++ })
		}, owners: []string{"c"}, others: true},
		"one job less": {change: func(n *v1beta1.NodeImage) {
			alter(n, "game", func(tag *v1beta1.ImageTagSpec) { tag.OwnerReferences = tag.OwnerReferences[:1] })
		}, owners: []string{"a", "b"}},
		"another tag": {change: func(n *v1beta1.NodeImage) {
			game := n.Spec.Images["game"]
			game.Tags = append(game.Tags, v1beta1.ImageTagSpec{Tag: "v2", OwnerReferences: []corev1.ObjectReference{{Namespace: "shop", Name: "d", UID: "d"}}})
			n.Spec.Images["game"] = game
		}, owners: []string{"d"}},
		"an image less": {change: func(n *v1beta1.NodeImage) { delete(n.Spec.Images, "game") }, owners: []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := ofTwoImages()
			after := before.DeepCopy()
			tc.change(after)
			owners, others := jobplan.Changed(before, after)
			var got []string
			for _, o := range owners {
				got = append(got, o.Name)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.owners, got); diff != "" || others != tc.others {
				t.Errorf("others %t, want %t; owners (-want +got):\n%s", others, tc.others, diff)
			}
		})
	}
}

// Jobs may wait for space on a NodeImage that has much. With every deletion of a job of any tenant, all jobs were enqueued otherwise.
func TestSpaceMattersToAllJobsWhereThereWasLittle(t *testing.T) {
	t.Parallel()
	for _, n := range []int{v1beta1.MaxImageTags / 2, v1beta1.MaxImageTags/2 + 1} {
		before := ofTwoImages()
		game := before.Spec.Images["game"]
		for i := len(game.Tags); i < n; i++ {
			game.Tags = append(game.Tags, v1beta1.ImageTagSpec{Tag: fmt.Sprint("v", i+2)})
		}
		before.Spec.Images["game"] = game
		after := before.DeepCopy()
		delete(after.Spec.Images, "other")
		if _, others := jobplan.Changed(before, after); others != (n > v1beta1.MaxImageTags/2) {
			t.Errorf("%d of %d tags: others %t", n, v1beta1.MaxImageTags, others)
		}
	}
}

// A change for which a job is not enqueued does not change the decision about it.
func TestNoJobMissesAChangeThatMattersToIt(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	jobs := make([]*v1beta1.ImagePullJob, 24)
	for i := range jobs {
		jobs[i] = job(func(j *v1beta1.ImagePullJob) {
			j.Namespace, j.Name, j.UID = fmt.Sprint("ns-", i%3), fmt.Sprint("j-", i), types.UID(fmt.Sprint(i))
			j.Spec.Image = fmt.Sprintf("image-%d:v%d", i%4, i%2)
			j.Status.StartTime = new(metav1.NewTime(now))
		})
	}
	gone := map[types.UID]bool{}
	states := map[image.Target]image.State{}
	phases := []v1beta1.ImagePullPhase{v1beta1.ImagePhaseWaiting, v1beta1.ImagePhasePulling, v1beta1.ImagePhaseSucceeded, v1beta1.ImagePhaseFailed}
	node := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	told := 0
	for step := range 500 {
		at := now.Add(time.Duration(step) * time.Second / 10)
		before := node.DeepCopy()
		j := jobs[random.IntN(len(jobs))]
		switch random.IntN(4) {
		case 0:
			gone[j.UID] = false
			if reference, err := image.Parse(j.Spec.Image); err == nil && !slices.ContainsFunc(owners(&node.Spec, reference), func(o corev1.ObjectReference) bool { return o.UID == j.UID }) {
				entry.Request(node, j, nil, at)
			}
		case 1:
			gone[j.UID] = true
			entry.Prune(node, func(o corev1.ObjectReference) *v1beta1.ImagePullJob {
				for _, other := range jobs {
					if other.UID == o.UID && !gone[o.UID] {
						return other
					}
				}
				return nil
			}, at)
		default:
			wants := image.Wanted(node.Spec)
			if len(wants) == 0 {
				continue
			}
			want := wants[random.IntN(len(wants))]
			state := image.State{Phase: phases[random.IntN(len(phases))], Version: want.Version, Started: at, Pulled: int64(step)}
			if state.Phase == v1beta1.ImagePhaseSucceeded || state.Phase == v1beta1.ImagePhaseFailed {
				state.Completed = at
			}
			states[want.Target] = state
			node.Status = image.Status(node.Spec, states)
		}
		owners, others := jobplan.Changed(before, node)
		if others {
			continue
		}
		told += len(owners)
		for _, j := range jobs {
			if slices.ContainsFunc(owners, func(o corev1.ObjectReference) bool { return o.UID == j.UID }) {
				continue
			}
			was, is := jobplan.Job(j, []*v1beta1.NodeImage{before}, at), jobplan.Job(j, []*v1beta1.NodeImage{node}, at)
			if diff := cmp.Diff(was, is); diff != "" {
				t.Fatalf("step %d, job %s (-before +after):\n%s", step, j.Name, diff)
			}
		}
	}
	if told == 0 || told > 500*8 {
		t.Errorf("%d times a job was told in 500 steps", told)
	}
}

func owners(spec *v1beta1.NodeImageSpec, reference image.Reference) []corev1.ObjectReference {
	if tag := image.TagSpec(spec, reference); tag != nil {
		return tag.OwnerReferences
	}
	return nil
}

package control

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

func named(name string, change ...func(*v1beta1.ImagePullJob)) *v1beta1.ImagePullJob {
	job := pullJob(change...)
	job.Name, job.UID = name, types.UID(name)
	return job
}

func ended(j *v1beta1.ImagePullJob) { j.Status.CompletionTime = new(metav1.Unix(0, 0)) }

func byPods(j *v1beta1.ImagePullJob) { j.Spec.PodSelector = &v1beta1.ImagePullJobPodSelector{} }

func elsewhere(j *v1beta1.ImagePullJob) { j.Namespace = "bank" }

func wantRequests(t *testing.T, got []ctrl.Request, want ...string) {
	t.Helper()
	names := make([]string, 0, len(got))
	for _, request := range got {
		names = append(names, request.String())
	}
	if slices.Sort(names); !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
}

func TestJobsThatAChangeMattersTo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, named("all"), named("all-ended", ended), named("pods", byPods), named("pods-ended", byPods, ended), named("pods", byPods, elsewhere))
	wantRequests(t, w.api.activeJobs(t.Context()), "bank/pods", "shop/all", "shop/pods")
	wantRequests(t, w.api.jobsOfPod(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}}), "shop/pods")
}

// What a job has asked of a node is removed when the job has ended or is gone, and not before.
func TestNodeImagesThatAnEndedJobMattersTo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node("a", nil), node("b", nil), pullJob(func(j *v1beta1.ImagePullJob) {
		j.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{Names: []string{"a"}}
	}))
	w.look()
	job := w.job("j")
	wantRequests(t, w.api.nodesOfJob(t.Context(), job))
	over, leaving := job.DeepCopy(), job.DeepCopy()
	ended(over)
	leaving.DeletionTimestamp = new(metav1.Unix(0, 0))
	wantRequests(t, w.api.nodesOfJob(t.Context(), over), "/a")
	wantRequests(t, w.api.nodesOfJob(t.Context(), leaving), "/a")
	w.check(w.Delete(t.Context(), job.DeepCopy()))
	wantRequests(t, w.api.nodesOfJob(t.Context(), job), "/a") // as the watch passes a deletion
	wantRequests(t, w.api.nodesOfJob(t.Context(), named("another")))
}

// reads counts the reads of a client, and may fail them.
type reads struct {
	client.Client
	count int
	fault error
}

func (r *reads) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	r.count++
	if r.fault != nil {
		return r.fault
	}
	return r.Client.Get(ctx, key, into, opts...)
}

// A cache may not have a job yet, or have the one before it of its name: that a job is gone is found out by the API server.
func TestAJobIsGoneIfTheAPIServerSaysSo(t *testing.T) {
	t.Parallel()
	before := pullJob()
	before.UID = "before"
	for name, tt := range map[string]struct {
		cached, live []client.Object
		fault        error
		found        bool
		asked        int
	}{
		"cached":              {[]client.Object{pullJob()}, nil, nil, true, 0},
		"not cached yet":      {nil, []client.Object{pullJob()}, nil, true, 1},
		"the one before":      {[]client.Object{before}, []client.Object{pullJob()}, nil, true, 1},
		"gone":                {nil, nil, nil, false, 1},
		"another of its name": {[]client.Object{before}, nil, nil, false, 1},
		"not known":           {nil, nil, errors.New("timeout"), true, 1},
	} {
		cached, live := newWorld(t, tt.cached...), &reads{Client: newWorld(t, tt.live...).Client, fault: tt.fault}
		cached.api.Live = live
		find, _, err := (&nodeImages{cached.api}).find(t.Context(), &v1beta1.NodeImage{})
		cached.check(err)
		for range 2 { // the second answer is remembered
			got := find(corev1.ObjectReference{Namespace: "shop", Name: "j", UID: "job"})
			if (got != nil) != tt.found || got != nil && got.UID != "job" {
				t.Errorf("%s: found %+v", name, got)
			}
		}
		if live.count != tt.asked {
			t.Errorf("%s: the API server was asked %d times, want %d", name, live.count, tt.asked)
		}
	}
}

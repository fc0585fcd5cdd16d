package meetings

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/test/chaos/cluster"
	"github.com/refit-project/refit/test/chaos/records"
)

// A schedule that stays behind when its meeting is over creates requests until the end of the run, which the judge then finds not ended.
func TestAMeetingLeavesNoSchedule(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		refused  int64 // deletions that the API server refuses
		overSoon bool  // the time of the faults is over before the meeting is
	}{
		"at once": {},
		"although the API server is away at first": {refused: 2},
		"when the time of the faults is over":      {refused: 2, overSoon: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, over := context.WithCancel(t.Context())
			defer over()
			m := refusing(t, test.refused)
			m.make(ctx, deal{8, meeting{"replace", func(ctx context.Context, s *stage) error {
				object := metav1.ObjectMeta{Namespace: s.namespace, Name: "minutely"}
				schedule := &refitv1alpha1.RestartSchedule{ObjectMeta: object}
				s.left = append(s.left, schedule)
				if test.overSoon {
					defer over()
				}
				return errors.Join(s.create(ctx, schedule), s.create(ctx, &refitv1alpha1.RestartRollout{ObjectMeta: object}),
					s.create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: workloadName}}))
			}}})
			if test.overSoon {
				if err := m.Last(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for _, list := range []client.ObjectList{&refitv1alpha1.RestartScheduleList{}, &refitv1alpha1.RestartRolloutList{}, &appsv1.DeploymentList{}} {
				if err := m.cluster.List(t.Context(), list); err != nil {
					t.Fatal(err)
				}
				if n := meta.LenList(list); n != 0 {
					t.Errorf("%d objects of %T stay behind", n, list)
				}
			}
		})
	}
}

// refusing are meetings on a cluster that refuses so many deletions.
func refusing(t *testing.T, times int64) *Meetings {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(appsv1.AddToScheme(scheme), policyv1.AddToScheme(scheme), refitv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	var refused atomic.Int64
	api := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if refused.Add(1) <= times {
				return errors.New("the API server is away")
			}
			return c.Delete(ctx, object, options...)
		},
	}).Build()
	journal, err := records.OpenJournal(filepath.Join(t.TempDir(), "faults.jsonl"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = journal.Close() })
	return New(&cluster.Cluster{WithWatch: api}, journal, func() *rand.Rand { return rand.New(rand.NewPCG(1, 1)) }, t.TempDir())
}

// A policy that stays behind would hold the workload of the next meeting.
func TestAMeetingLeavesNoWorkloadOfAnyKind(t *testing.T) {
	t.Parallel()
	m := refusing(t, 0)
	for n, kind := range []string{kindDeployment, kindStatefulSet, kindDaemonSet} {
		m.make(t.Context(), deal{n, meeting{"templates", func(ctx context.Context, s *stage) error {
			s.kind = kind
			p := &refitv1alpha1.InPlaceUpdatePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: workloadName}}
			s.left = append(s.left, p)
			return errors.Join(s.create(ctx, p), s.create(ctx, s.named()))
		}}})
	}
	for _, list := range []client.ObjectList{&refitv1alpha1.InPlaceUpdatePolicyList{}, &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &appsv1.DaemonSetList{}} {
		if err := m.cluster.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		if n := meta.LenList(list); n != 0 {
			t.Errorf("%d objects of %T stay behind", n, list)
		}
	}
}

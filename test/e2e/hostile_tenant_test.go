package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

const (
	// fewOperations is how often each canary has at least done its operation when the short run ends, manyOperations in the run of
	// make hostile.
	fewOperations, manyOperations = 3, 200
	// manyLanes is how many pods of make hostile do each operation that lasts for seconds.
	manyLanes = 4
	// manyThings is how many objects of each kind that is cheap to write the floods of make hostile have.
	manyThings = 1000
	// fewerThings is what the floods of the short run are divided by: tests come after it.
	fewerThings = 5
	// attackPatience bounds one write of an attack.
	attackPatience = 30 * time.Second
	// slowAttack is how long an attack takes that is named in the log.
	slowAttack = 10 * time.Second
	// slowest is how many times as long as beside objects that Refit does not look at an operation of a canary may take.
	slowest = 2
)

// TestATenantHarmsNobodyElse attacks with what a tenant with the role edit, and each program of Refit whose token it has stolen, can write, while another tenant's operations of each kind
// go on: no program of Refit restarts, and each result is right. With REFIT_HOSTILE=short, in make test, the floods are smaller. With REFIT_HOSTILE=long the attacks are repeated until there
// are enough operations to compare how long they take with how long they take beside as many objects that Refit does not look
// at. It is not parallel: others restart the programs of Refit.
func TestATenantHarmsNobodyElse(t *testing.T) {
	long := os.Getenv("REFIT_HOSTILE") == "long"
	if os.Getenv("REFIT_HOSTILE") == "" {
		t.Skip("make hostile runs it")
	}
	s := newSidecarFixture(t)
	tenant, own := newFixture(t), newFixture(t)
	set := s.sidecarSetOfBoth(tenant)
	lanes := 1
	if long {
		lanes = manyLanes
	}
	_, err := tool()
	s.check(err, "build kubectl-refit, before its time is measured")
	canaries := s.canaries(lanes)
	programs, err := s.programs(t.Context())
	s.check(err, "find the programs of Refit")
	a := s.attacker(tenant.namespace, own.namespace, set)
	a.programs, a.bystander = programs, s.bystander()
	a.others, err = s.others(t.Context(), a.bystander)
	s.check(err, "look at the objects of the other tenant")

	var work sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for _, c := range canaries {
		work.Go(func() { c.run(ctx) })
	}
	defer work.Wait()
	defer stop()
	defer s.endsAttacks(tenant.namespace)

	if long {
		a.share = 1
		s.beside(ctx, a, canaries, manyOperations, s.ordinary)
		for _, c := range canaries {
			c.besideOthers, _ = c.forget()
		}
	}
	operations := fewOperations
	a.share = fewerThings
	if long {
		operations, a.share = manyOperations, 1
	}
	s.beside(ctx, a, canaries, operations, s.attackAll)
	stop()
	work.Wait()
	for _, c := range canaries {
		t.Log(c.figures())
		p99, wrong := c.forget()
		for _, err := range wrong {
			t.Error(err)
		}
		if long && p99 > slowest*c.besideOthers {
			t.Errorf("%s: the slowest of 100 took %s beside the attacks, and %s beside other objects", c.name, p99, c.besideOthers)
		}
	}
	s.unharmed(a.victim)
	s.stillRun(t.Context(), programs)
	for _, fault := range s.unhandled(t.Context()) {
		t.Error(fault)
	}
}

// attacker is a tenant with the namespaces, beside the tenant whose namespace the fixture has.
func (s *sidecarFixture) attacker(namespace, own, set string) attacker {
	s.t.Helper()
	repository, tag, _ := s.testappImage()
	a := attacker{Client: s.editor(namespace), namespace: namespace, own: own, other: s.namespace, set: set, image: repository + ":" + tag}
	s.writesStatuses(namespace, own)
	a.victim = s.start(s.victim())
	a.stolen = s.steal(a.victim.Spec.NodeName, namespace)
	return a
}

// pullsAtOnce is how many ImagePullJobs are deleted by one request, which the API server ends after a minute.
const pullsAtOnce = 100

// pullsEndWithin is how long the deletion of the last round's ImagePullJobs may take.
const pullsEndWithin = 4 * patience

// endsAttacks takes away what the attacks have left, and waits for that: the next test may use the same image.
func (s *sidecarFixture) endsAttacks(namespace string) {
	s.t.Helper()
	ctx, began := s.t.Context(), time.Now()
	s.check(s.DeleteAllOf(ctx, &v1beta1.ImageListPullJob{}, client.InNamespace(namespace)), "delete ImageListPullJobs")
	ended := until(ctx, pullsEndWithin, func(ctx context.Context) (bool, error) {
		var left v1beta1.ImagePullJobList
		var nodes v1beta1.NodeImageList
		err := errors.Join(s.List(ctx, &left, client.InNamespace(namespace)), s.List(ctx, &nodes))
		if len(left.Items) > 0 && err == nil {
			return false, s.DeleteAllOf(ctx, &v1beta1.ImagePullJob{}, &client.DeleteAllOfOptions{ListOptions: client.ListOptions{Namespace: namespace, Limit: pullsAtOnce}})
		}
		text, encoding := json.Marshal(nodes.Items)
		return !strings.Contains(string(text), `"`+namespace+`"`), errors.Join(err, encoding)
	})
	s.check(ended, "wait for the end of the attacks' image pulls")
	s.t.Logf("the image pulls of the attacks had ended after %s", time.Since(began).Round(time.Second))
	var pods corev1.PodList
	s.check(s.List(ctx, &pods, client.InNamespace(namespace)), "list pods")
	for i := range pods.Items {
		if pod := &pods.Items[i]; len(pod.Finalizers) > 0 {
			s.check(s.Patch(ctx, pod, merge(`{"metadata":{"finalizers":null}}`)), "remove finalizers")
		}
	}
	s.check(s.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(namespace), client.GracePeriodSeconds(0)), "delete pods")
	all := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	s.check(s.Delete(ctx, all), "delete namespace")
	s.await("end of the attacks' namespace", func(ctx context.Context) (bool, error) {
		err := s.Get(ctx, client.ObjectKeyFromObject(all), all)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	s.t.Logf("everything that the attacks had made was gone after %s", time.Since(began).Round(time.Second))
}

// beside repeats what is done until each canary has done its operation often enough.
func (s *sidecarFixture) beside(ctx context.Context, a attacker, canaries []*canary, operations int, do func(context.Context, attacker)) {
	s.t.Helper()
	for a.round = 0; ; a.round++ {
		began := time.Now()
		do(ctx, a)
		a.programs = s.stillRun(ctx, a.programs)
		a.others = s.unchanged(ctx, a)
		fewest := slices.MinFunc(canaries, func(a, b *canary) int { return a.count() - b.count() })
		if operations == manyOperations {
			s.t.Logf("round %d, %s: at least %d operations of each kind", a.round, time.Since(began).Round(time.Second), fewest.count())
			for _, c := range canaries {
				s.t.Log(c.figures())
			}
			s.belowLimits(ctx, a.programs)
		}
		if fewest.count() >= operations {
			return
		}
		if a.round > 0 && operations == fewOperations {
			err := until(ctx, fewOperations*canaryPatience, func(context.Context) (bool, error) { return fewest.count() >= operations, nil })
			s.check(err, "wait for %d operations of kind %s", operations, fewest.name)
		}
	}
}

// attackAll makes all attacks, and then deletes what they have created.
func (s *sidecarFixture) attackAll(ctx context.Context, a attacker) {
	all, err := chosen(os.Getenv("REFIT_ATTACKS"))
	s.check(err, "choose attacks")
	s.makes(ctx, a, all)
	s.clears(ctx, a)
	if a.round == 0 {
		s.t.Logf("%d attacks", len(all))
	}
}

// ordinary writes as many objects as the attacks do, and deletes them: ConfigMaps, which Refit does not look at, and pods that no
// object of Refit selects. Large pods delay the API server and Kubernetes' own controllers much more than large ConfigMaps.
func (s *sidecarFixture) ordinary(ctx context.Context, a attacker) {
	small := "{apiVersion: v1, kind: ConfigMap, data: {a: b}}"
	large := "{apiVersion: v1, kind: Pod, metadata: {annotations: {example.com/x: $LONG}}, spec: {nodeSelector: {refit.dev/no-such-node: 'true'}, containers: [{name: app, image: a}]}}"
	all := map[string]attack{"60 of 200 kB": flood(60, large)}
	for i, n := range []int{255, manyThings, manyThings, manyThings, manyThings, manyThings, manyThings, manyThings, 50, 110} {
		all[fmt.Sprintf("%d, %d small ones", i, n)] = flood(n, small)
	}
	s.makes(ctx, a, all)
	s.clears(ctx, a)
}

// makes makes attacks, eight at a time, and fails the test where one is not answered as it should be.
func (s *sidecarFixture) makes(ctx context.Context, a attacker, all map[string]attack) {
	next := make(chan string)
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			for name := range next {
				one := a
				one.attack = name
				began := time.Now()
				err := all[name].do(ctx, one)
				if took := time.Since(began); took > slowAttack {
					s.t.Logf("round %d: %s took %s", a.round, name, took.Round(time.Second))
				}
				if len(all[name].words) > 0 && (err == nil || !containsAll(err.Error(), all[name].words)) {
					s.t.Errorf("%s: %.500v, want a refusal with %q", name, err, all[name].words)
				}
				if len(all[name].words) == 0 && err != nil && !refusal(err) {
					s.t.Errorf("%s: %.500v", name, err)
				}
			}
		})
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		next <- name
	}
	close(next)
	work.Wait()
}

// clears deletes what a round has created, as otherwise the API server would be slower in each round. The short run has one round.
func (s *sidecarFixture) clears(ctx context.Context, a attacker) {
	if a.share != 1 {
		return
	}
	for _, kind := range []client.Object{
		&v1beta1.ImageListPullJob{}, &v1alpha1.InPlaceUpdatePolicy{}, &v1alpha1.RestartSchedule{}, &v1alpha1.RestartRollout{}, &v1beta1.ContainerRecreateRequest{},
		&v1beta1.PodProbeMarker{}, &corev1.ConfigMap{}, &appsv1.Deployment{}, &policyv1.PodDisruptionBudget{}, &corev1.Pod{},
	} {
		for _, namespace := range []string{a.namespace, a.own} {
			if err := a.DeleteAllOf(ctx, kind, client.InNamespace(namespace), client.GracePeriodSeconds(0)); err != nil && ctx.Err() == nil {
				s.t.Logf("delete %T of a round: %v", kind, err)
			}
		}
	}
	some := &client.DeleteAllOfOptions{ListOptions: client.ListOptions{Namespace: a.namespace, Limit: pullsAtOnce}}
	for range 2 * manyThings / pullsAtOnce {
		if err := a.DeleteAllOf(ctx, &v1beta1.ImagePullJob{}, some); err != nil && ctx.Err() == nil {
			s.t.Logf("delete ImagePullJobs of a round: %v", err)
		}
	}
}

// refusal reports whether an error is an answer to an attack, not a failure to answer.
func refusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsAlreadyExists(err) ||
		apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsTooManyRequests(err) || apierrors.IsNotFound(err)
}

// editor is the client of an account with the role edit in a namespace.
func (s *fixture) editor(namespace string) client.Client {
	s.t.Helper()
	s.bind(namespace, namespace, "ClusterRole", "edit")
	return s.as(s.token(namespace, "default", nil))
}

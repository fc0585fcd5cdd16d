package e2e_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/test/kit/turns"
)

// Parts of the cluster that there are once.
const (
	managers turns.Parts = 1 << iota // the pods of refit-manager, and which of them leads
	requests                         // the CRD of ContainerRecreateRequests
	pulls                            // the CRDs of image pulls, the NodeImages, and which images a node has
	holds                            // what holds workloads: an admission policy, or a webhook
	leads                            // that one manager controls SidecarSets and workloads
	kruise                           // objects with the names of OpenKruise's
	daemon1                          // refit-daemon of the first node
	daemon2                          // refit-daemon of the last node
	kubelet1                         // kubelet and containerd of the first node
	kubelet2                         // kubelet and containerd of the last node
	end

	daemons, kubelets = daemon1 | daemon2, kubelet1 | kubelet2
	everything        = end - 1
)

// disturbance is a test that changes what other tests rely on. These tests run before all others, which rely on everything.
type disturbance struct {
	test   string
	claims turns.Claims
}

// disturbances are in the order in which they begin if their claims allow it: first what takes the managers away for long, and what can do
// without them meanwhile. A test that takes the managers away, or changes them, needs them before, while it prepares; see withoutManager and
// takesManagers.
var disturbances = []disturbance{
	{"TestRequestsUnderCRDsOfV1alpha1Alone", turns.Claims{Needs: managers | kubelet1, Changes: requests | daemons}},
	{"TestCompiledSidecarSetIsInjectedWithoutTheManager", turns.Claims{Needs: managers | leads}},
	{"TestWorkloadIsHeldWhileNoManagerRuns", turns.Claims{Needs: managers | leads | holds}},
	{"TestWorkloadIsHeldByItsLabelWherePoliciesAreNotKnown", turns.Claims{Needs: managers | leads | holds}},
	{"TestMaxContainerRestartPeriodBoundsTheBackOff", turns.Claims{Changes: kubelet2}},
	{"TestUpdateResumesAfterKubeletWasDown", turns.Claims{Changes: kubelet2}},

	{"TestGracePeriodOutlivesTheDaemon", turns.Claims{Needs: managers | requests | kubelet1, Changes: daemon1}},
	{"TestATenantHarmsNobodyElse", turns.Claims{Needs: managers | leads | requests | holds | daemons, Changes: pulls}},
	{"TestEventedPLEG", turns.Claims{Needs: managers | requests | daemons, Changes: kubelet2}},
	{"TestSuccessByContainerIdentity", turns.Claims{Needs: managers | requests | daemon2 | kubelet2}},
	{"TestWebhookHoldsWhereTheAPIServerCannot", turns.Claims{Needs: managers | leads, Changes: holds}},
	{"TestImageAndResourcesOneAfterTheOtherAndAtOnce", turns.Claims{Needs: managers | pulls | daemons, Changes: kubelet1}},
	{"TestImagePulledByAnotherThanKubelet", turns.Claims{Needs: managers | pulls | daemons, Changes: kubelet2}},
	{"TestOneStopUnderOpenKruisesCRD", turns.Claims{Needs: managers | kubelet1, Changes: requests | daemon1}},
	{"TestSidecarExecutesRequestsWhereNoDaemonRuns", turns.Claims{Needs: managers | requests | kubelet2, Changes: daemon2}},
	{"TestAPullBeforeAnUpdateIsWaitedForWhileTheDaemonRestarts", turns.Claims{Needs: managers | leads | pulls | holds | kubelet1, Changes: daemon1}},
	{"TestFullDiskFailsPullsUntilThereIsRoom", turns.Claims{Needs: managers | daemons | kubelet1, Changes: pulls}},
	{"TestImagesUnderOpenKruisesCRDs", turns.Claims{Needs: managers | daemons | kubelets, Changes: pulls}},
	{"TestImagePullJobPullsOnEveryNode", turns.Claims{Needs: managers | daemons, Changes: pulls}},
	{"TestPullSecretsAreReadOnlyWhereAllowed", turns.Claims{Needs: managers | daemons, Changes: pulls}},
	{"TestRequestsAreKeptWhenTheConversionWebhookIsRemoved", turns.Claims{Needs: managers | daemon1 | kubelet1, Changes: requests}},
	{"TestOpenKruisesManagerIsTakenAwayAndPutBack", turns.Claims{Needs: managers | daemon1 | kubelet1, Changes: requests | pulls | kruise}},

	{"TestRolloutByTwoLeadersAtOnce", turns.Claims{Needs: managers | kubelets, Changes: leads}},
	{"TestRolloutSurvivesTheDeathOfItsManager", turns.Claims{Needs: managers | leads | kubelets}},
	{"TestUpdateOfAWorkloadSurvivesTheDeathOfItsManager", turns.Claims{Needs: managers | leads | holds | kubelets}},
	{"TestEvictionsSurviveTheDeathOfTheManager", turns.Claims{Needs: managers | leads | kubelets}},
	{"TestDrainEndsWhenTheLeaderIsLost", turns.Claims{Needs: managers | requests | daemon2 | kubelet2}},

	{"TestWhatDiffersAfterAChangeOfProgramsIsReported", turns.Claims{Changes: everything}}, // it reads all objects of the cluster
	{"TestAManagerStartsBesideLargePods", turns.Claims{Changes: everything}},
}

// onOneNode are claims on a cluster whose first node is the last one.
func onOneNode(c turns.Claims) turns.Claims {
	const last = daemon2 | kubelet2
	for _, parts := range []*turns.Parts{&c.Needs, &c.Changes} {
		if *parts&daemon2 != 0 {
			*parts |= daemon1
		}
		if *parts&kubelet2 != 0 {
			*parts |= kubelet1
		}
		*parts &^= last
	}
	return c
}

// inTurn is t.Parallel for a disturbance, and its first line: it waits until the test may begin.
func inTurn(t *testing.T) {
	t.Helper()
	t.Parallel()
	if schedule == nil {
		return // without a cluster the test is skipped
	}
	rank := rankOf(t.Name())
	if rank < 0 {
		t.Fatalf("%s is not among disturbances", t.Name())
	}
	claims := disturbances[rank].claims
	if cluster, err := connect(); err == nil && len(cluster.nodes) == 1 {
		claims = onOneNode(claims)
	}
	began := time.Now()
	turn, err := schedule.Begin(t.Context(), rank, claims)
	t.Cleanup(turn.End)
	if err != nil {
		t.Fatalf("wait for the turn of the test: %v", err)
	}
	current.Store(t.Name(), turn)
	t.Logf("it began after %s", time.Since(began).Round(time.Second))
}

// turn returns the turn of the test, which has to be a disturbance.
func (s *fixture) turn() *turns.Turn {
	s.t.Helper()
	turn, ok := current.Load(s.t.Name())
	if !ok {
		s.t.Fatalf("%s is not among disturbances, and changes what other tests rely on", s.t.Name())
	}
	return turn.(*turns.Turn)
}

// mayChange ends a test that changes what it does not claim to change.
func (s *fixture) mayChange(parts turns.Parts) {
	s.t.Helper()
	if has := s.turn().Claims().Changes; parts&^has != 0 {
		s.t.Fatalf("%s changes the parts %b and claims to change %b: see disturbances", s.t.Name(), parts, has)
	}
}

// exchanges claims something else for the rest of the test.
func (s *fixture) exchanges(claims turns.Claims) {
	s.t.Helper()
	s.check(s.turn().Exchange(s.t.Context(), claims), "wait for other tests")
}

// takesManagers lets no other test need the managers, or change them, for the rest of the test.
func (s *fixture) takesManagers() {
	s.t.Helper()
	claims := s.turn().Claims()
	claims.Needs, claims.Changes = claims.Needs&^managers, claims.Changes|managers
	s.exchanges(claims)
}

// needsNoMore lets other tests change parts during the rest of the test.
func (s *fixture) needsNoMore(parts turns.Parts) {
	s.t.Helper()
	claims := s.turn().Claims()
	claims.Needs &^= parts
	s.exchanges(claims)
}

func (s *fixture) daemonPart(node string) turns.Parts {
	if node == s.nodes[0] {
		return daemon1
	}
	return daemon2
}

func (s *fixture) kubeletOf(node string) turns.Parts {
	if node == s.nodes[0] {
		return kubelet1
	}
	return kubelet2
}

// gone counts the tests that have taken the managers away.
var gone struct {
	mu       sync.Mutex
	tests    int
	replicas int32 // that were there before
}

// withoutManager takes all pods of refit-manager away for the rest of the test, together with other tests that do, and claims to change
// other parts from then on.
func (s *fixture) withoutManager(changes turns.Parts) {
	s.t.Helper()
	claims := s.turn().Claims()
	claims.Needs, claims.Changes, claims.Away = claims.Needs&^(managers|changes), claims.Changes|changes, managers
	s.exchanges(claims)
	gone.mu.Lock()
	defer gone.mu.Unlock()
	gone.tests++
	s.t.Cleanup(s.managerAgain)
	if gone.tests > 1 {
		return
	}
	ctx := context.WithoutCancel(s.t.Context())
	manager := &appsv1.Deployment{}
	s.check(s.Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: "refit-manager"}, manager), "get manager")
	gone.replicas = *manager.Spec.Replicas
	s.check(s.scaleManager(ctx, 0), "scale manager down")
	s.await("end of the manager's pods", func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		err := s.List(ctx, &pods, managerPods()...)
		return len(pods.Items) == 0, err
	})
}

// managerAgain brings the managers back if no other test has taken them away too.
func (s *fixture) managerAgain() {
	gone.mu.Lock()
	defer gone.mu.Unlock()
	gone.tests--
	if gone.tests > 0 || gone.replicas == 0 {
		return
	}
	ctx := context.WithoutCancel(s.t.Context())
	if err := s.scaleManager(ctx, gone.replicas); err != nil {
		s.t.Errorf("scale manager up again: %v", err)
	}
	if err := until(ctx, patience, s.admits); err != nil {
		s.t.Errorf("wait for the manager: %v", err)
	}
}

func (s *fixture) scaleManager(ctx context.Context, replicas int32) error {
	manager := &appsv1.Deployment{}
	manager.Namespace, manager.Name = systemNamespace, "refit-manager"
	return s.Patch(ctx, manager, merge(fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)))
}

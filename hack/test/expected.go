package main

import (
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"

	"github.com/refit-project/refit/hack/test/verdict"
)

// Names of steps with tests.
const (
	unitOfRoot      = "unit tests of root"
	conformanceStep = "conformance of containerd"
	pullStep        = "pulls by containerd"
	chartStep       = "chart on the cluster"
	endToEndStep    = "end-to-end tests"
	chaosStep       = "a small dose of chaos"
)

// expected is what has to have run, on the version of Kubernetes with this minor number, or 0 for the default. The numbers are a little below what there is, so that a part that is lost is
// noticed and a new test needs no change here.
func expected(part string, kubernetes int) map[string]verdict.Expected {
	quick := map[string]verdict.Expected{
		unitOfRoot: {
			Required: map[string]int{
				`\.TestImportsFollowTheLayers$`:                          1,
				`\.TestDependencyBudgets$`:                               1,
				`refit/(crr|probe|hotupdate)(/|\.)`:                      300,
				`refit/(cri|signal|internal/kube)(/|\.)`:                 100,
				`refit/\w+/(node|control|webhook|inpod)(/|\.)`:           200,
				`refit/test/chaos/history\.TestPlanted\w*/`:              80,
				`refit/test/chaos/history\.TestPlantedOutages/`:          20,
				`refit/test/chaos/history\.TestGoodRestartsOfWorkloads/`: 16,
				// What must not be lost unnoticed, whatever else is renamed.
				`\.TestFilesOfTheSidecarAreClosedToProcessesOfItsUser$`: 1,
				`\.TestCredentialsOfURLsAreNowhere$`:                    1,
				`\.TestProcessNameNeverMeansAnotherProgram$`:            1,
				`\.TestFoldersOfAnArchiveCountAgainstTheLimit$`:         1,
				`\.TestForcedRequestRecords`:                            1,
				`\.TestManagerMayWriteOfPodsOnly`:                       1,
				`\.TestOverloadDelaysProbesAndFailsNone$`:               1,
				`\.Fuzz`: 5,
			},
			MaySkip: map[string]string{
				`refit/cri\.TestRealRuntime$`:                "the conformance step runs it on a runtime",
				`refit/cri\.TestRealRuntimePulls$`:           "the step of pulls runs it on a runtime",
				`refit/test/chaos\.TestSmallDose$`:           "the chaos step runs it on a cluster",
				`refit/test/chart\.TestChart$`:               "the step of the chart runs it on a cluster",
				`refit/test/chart\.TestReleaseIsInstalled`:   "make test-release runs it on a cluster",
				`refit/test/chart\.TestRestartsUnderLoad`:    "make test-load runs it on a cluster",
				`refit/test/chart\.TestUpgradeFromAnEarlier`: "needs the tag or commit of an earlier version",
				`refit/cri\.TestDefaultRoots`:                "a part of it needs a machine without a runtime",
				`refit/cri\.FuzzBounded/`:                    "a seed outside of what it checks",
				`refit/hotupdate\.TestFullDisk$`:             "needs to mount a file system",
				`refit/signal\.TestPermissionOfARealProcess`: "needs root, and folders that others may enter",
				`refit/sidecarmode\.TestSidecarThatIsInit`:   "needs namespaces and to mount a file system",
			},
		},
		"unit tests of api":              {},
		"unit tests of test/cluster":     {},
		"unit tests of test/virtualnode": {},
		"unit tests of hack/images":      {},
		"unit tests of hack/chart":       {},
		"unit tests of examples/inplace": {Required: map[string]int{`\.TestTheUpdateIsWrittenToThePod$`: 1}},
		"unit tests of hack/monitoring":  {Required: map[string]int{`\.TestQueriesOfTheDashboard$`: 1, `\.TestQueriesOfTheRules$`: 1}},
		"unit tests of hack/release": {
			Required: map[string]int{`\.TestTwoBuildsInTwoFoldersAreTheSame$`: 1, `\.TestChangedByteFailsVerification$`: 1},
			MaySkip:  map[string]string{`\.TestOpensslVerifies$`: "openssl may not be installed"},
		},
	}
	onCluster := map[string]verdict.Expected{
		conformanceStep: {Required: map[string]int{`\.TestRealRuntime/`: 10}},
		pullStep:        {Required: map[string]int{`\.TestRealRuntimePulls/`: 10}},
		chartStep: {
			Required: map[string]int{`\.TestChart$`: 1},
			MaySkip: map[string]string{
				`\.TestUpgradeFromAnEarlier`: "needs the tag or commit of an earlier version",
				`\.TestRestartsUnderLoad`:    "takes 4 minutes: make test-load",
				`\.TestReleaseIsInstalled`:   "builds two releases: make test-release",
			},
		},
		endToEndStep: {Required: map[string]int{
			`test/e2e\.Test[A-Za-z0-9]+$`:               150,
			`test/e2e\.TestOneStopUnderOpenKruisesCRD$`: 1, `test/e2e\.TestManagersTokenIsNotWorthACluster$`: 1,
			`test/e2e\.TestDaemonMayWriteOnlyWhatConcernsItsNode$`: 1, `test/e2e\.TestASidecarRecordsOnlyForItsWholeWorkload$`: 1,
			`test/e2e\.Test(HandOffToKruiseDaemon/begun_by|RequestsAreKeptWhen)`:                 3,
			`test/e2e\.Test(WhatDiffersAfterAChangeOfPrograms|OpenKruisesManagerIsTaken)\w+$`:    2,
			`test/e2e\.Test(AJobWithAlwaysAsksTheRegistry|ALaterJobDoesNotReplaceThePolicy)\w+$`: 2,
			// Rollouts as a client of the Service sees them: the subtests of the one that follows another count too.
			`test/e2e\.Test(PodsThatHaveJustBeen|YoungPods|AReadinessBlip|ARequestThatFails|ARolloutThatFollows|AScheduleThatReplaces)\w+`: 6,
			`test/e2e\.Test(ChangedConfigMapRestarts|ScheduleRestarts|GateHolds|MetricsOfTheDashboard)\w+$`:                                4,
			`test/e2e\.Test(ANamespaceAsksForReadinessGates|SidecarsOfAJobEndWithIt|ASidecarSetAsksForFieldsOfThePod|PodsOnVirtualNodes)$`: 4,
			`test/e2e\.TestTutorials/`: 8, `test/e2e\.TestATenantHarmsNobodyElse$`: 1,
		}, MaySkip: skippedEndToEnd()},
		chaosStep: {Required: map[string]int{`\.TestSmallDose$`: 1}},
	}
	switch part {
	case partCheck:
		return quick
	case partCluster:
		return onCluster
	case partE2E:
		return map[string]verdict.Expected{endToEndStep: anyVersion(kubernetes)}
	}
	maps.Copy(quick, onCluster)
	return quick
}

// skippedEndToEnd are the end-to-end tests that only another target runs.
func skippedEndToEnd() map[string]string {
	return map[string]string{
		`test/e2e\.TestAManagerStartsBesideLargePods$`: "make hostile runs it",
		`test/e2e\.Test\w+OfAVirtualNode$`:             "make e2e-virtual runs it",
	}
}

// anyVersion is what the end-to-end tests are held to on a version of Kubernetes that make test does not run on. Tests that need a
// newer one may be skipped.
func anyVersion(kubernetes int) verdict.Expected {
	return verdict.Expected{
		Required:   map[string]int{`test/e2e\.Test[A-Za-z0-9]+$`: 130},
		MaySkip:    skippedEndToEnd(),
		Kubernetes: kubernetes,
	}
}

// kubernetesMinor is the number in $KUBERNETES, as 34 of 1.34, or 0 for the default version.
func kubernetesMinor() (int, error) {
	version := os.Getenv("KUBERNETES")
	if version == "" {
		return 0, nil
	}
	minor, err := strconv.Atoi(strings.TrimPrefix(version, "1."))
	if err != nil {
		return 0, fmt.Errorf("KUBERNETES=%s: %w", version, err)
	}
	return minor, nil
}

package e2e_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// since is the minor version of Kubernetes in which something that tests need is on by default.
type since struct {
	minor int
	what  string
}

var (
	resizes           = since{33, "the resize of pods (KEP-1287)"}
	restartRules      = since{35, "rules for the restart of a container (KEP-5307)"}
	mutatingPolicies  = since{36, "MutatingAdmissionPolicy in v1 (KEP-3962)"}
	observedByKubelet = since{34, "observedGeneration of pods (KEP-5067)"}
	relistsOnEvents   = since{37, "a relist for each event of the runtime (EventedPLEG, KEP-3386)"}
)

// needed is what older versions of Kubernetes lack, by the names of the tests that need it.
var needed = map[string]since{
	"TestCompiledSidecarSetIsInjectedWithoutTheManager": mutatingPolicies,
	"TestContainerPolicyAndRulesComeBeforeThePods":      restartRules,
	"TestImageAndResourcesOneAfterTheOtherAndAtOnce":    resizes,
	"TestImageOfANativeSidecarRestartsOnlyTheSidecar":   observedByKubelet,
	"TestImagePulledByAnotherThanKubelet":               {35, "imagePullCredentialsVerificationPolicy (KEP-2535)"},
	"TestMaxContainerRestartPeriodBoundsTheBackOff":     {35, "the maximum of kubelet's back-off (KEP-4603)"},
	"TestObservedGenerationComesBeforeTheNewContainer":  observedByKubelet,
	"TestPrecheckRefusesBeforeAnythingChanges":          {36, "image volumes (KEP-4639)"},
	"TestResize":                                        resizes,
	"TestResizeBelowWhatIsUsed":                         resizes,
	"TestResizeTheAPIServerRefuses":                     resizes,
	"TestResourcesAndVariablesOfAWorkloadAreSet":        resizes,
	"TestResourcesOfATemplateAreChangedWithoutRestarts": resizes,
	"TestRuleRestartsAllContainersInPlace":              {36, "the rule that restarts all containers (KEP-5532)"},
	"TestTutorials/update-a-pod-in-place":               resizes,
	"TestTutorials/update-a-workload-in-place":          resizes,
	"TestWhatOthersAddToASidecarStays":                  mutatingPolicies,
	"TestWorkloadIsHeldWhileNoManagerRuns":              mutatingPolicies,
	"TestWorkloadIsHeldByItsLabelWithoutRefitManager":   mutatingPolicies,
}

// needsItsVersion skips the test on a version of Kubernetes that lacks what it needs.
func (c *cluster) needsItsVersion(t *testing.T) {
	t.Helper()
	test, _, _ := strings.Cut(t.Name(), "/")
	for _, name := range []string{test, t.Name()} {
		c.needs(t, needed[name])
	}
}

// needs skips the test on an older version of Kubernetes. hack/test/verdict reads the version from the text.
func (c *cluster) needs(t *testing.T, is since) {
	t.Helper()
	if c.minor < is.minor {
		t.Skipf("needs Kubernetes 1.%d for %s", is.minor, is.what)
	}
}

// minorVersion asks the API server for its version. Some providers add a plus sign.
func minorVersion(config *rest.Config) (int, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return 0, fmt.Errorf("connect: %w", err)
	}
	version, err := client.ServerVersion()
	if err != nil {
		return 0, fmt.Errorf("ask for the version of Kubernetes: %w", err)
	}
	minor, err := strconv.Atoi(strings.TrimRight(version.Minor, "+"))
	if err != nil {
		return 0, fmt.Errorf("version of Kubernetes: %w", err)
	}
	return minor, nil
}

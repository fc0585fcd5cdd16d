package testcluster_test

import (
	"strings"
	"testing"

	"github.com/refit-project/refit/test/bench/testcluster"
)

func TestBenchmarkOutsideOfTheClusterSaysHowToStartIt(t *testing.T) {
	t.Setenv("REFIT_CLUSTER", "")
	t.Setenv("KUBECONFIG", "/home/user/.kube/config")
	if _, err := testcluster.Find("crr"); err == nil || !strings.Contains(err.Error(), "test/bench/crr/run.sh") {
		t.Errorf("err = %v", err)
	}
}

func TestClusterIsFoundByItsFolder(t *testing.T) {
	t.Setenv("REFIT_CLUSTER", "/checkout/.cluster")
	t.Setenv("KUBECONFIG", "/checkout/.cluster/kubeconfig")
	c, err := testcluster.Find("crr")
	if err != nil || c.Root != "/checkout" || c.Installation(nil).Kubectl != "/checkout/.cluster/bin/kubectl" {
		t.Errorf("%+v, %v", c, err)
	}
	if app, err := c.Testapp([]string{"r/refit-daemon:a", "r/testapp:b"}); err != nil || app != "r/testapp:b" {
		t.Errorf("testapp %q, %v", app, err)
	}
	if _, err := c.Testapp(nil); err == nil || !strings.Contains(err.Error(), "testapp") {
		t.Errorf("err = %v", err)
	}
}

package testcluster

import (
	"strings"
	"testing"
)

func TestBenchmarkOutsideOfTheClusterSaysHowToStartIt(t *testing.T) {
	t.Setenv("REFIT_CLUSTER", "")
	t.Setenv("KUBECONFIG", "/home/user/.kube/config")
	if _, err := Find("crr"); err == nil || !strings.Contains(err.Error(), "make bench-crr") {
		t.Errorf("err = %v", err)
	}
}

func TestClusterIsFoundByItsFolder(t *testing.T) {
	t.Setenv("REFIT_CLUSTER", "/checkout/.cluster")
	t.Setenv("KUBECONFIG", "/checkout/.cluster/kubeconfig")
	c, err := Find("crr")
	if err != nil || c.Root != "/checkout" || c.Installation().Kubectl != "/checkout/.cluster/bin/kubectl" {
		t.Fatalf("%+v, %v", c, err)
	}
	if _, err := c.testapp(); err == nil || !strings.Contains(err.Error(), "testapp") {
		t.Errorf("err = %v", err)
	}
	c.Images = []string{"r/refit-daemon:a", "r/testapp:b"}
	if app, err := c.testapp(); err != nil || app != "r/testapp:b" {
		t.Errorf("testapp %q, %v", app, err)
	}
}

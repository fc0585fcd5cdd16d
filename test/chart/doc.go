// Package chart tests the Helm chart on a real cluster, as its users have it: packaged, installed, tested, upgraded and rolled
// back while containers are restarted, and uninstalled. Its tests skip themselves unless REFIT_CHART=1 is set, and need
//
//	KUBECONFIG  a cluster without Refit, whose namespaces refit-system and kruise-daemon-config are made and deleted
//
// and the images that hack/images.sh --extra testapp=test/e2e/testapp has pushed.
package chart

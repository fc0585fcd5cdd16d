// Package chart tests the Helm chart on a real cluster, as its users have it: packaged, installed, tested, upgraded and rolled
// back while containers are restarted, and uninstalled. Its tests skip themselves unless REFIT_CHART=1 is set, and need
//
//	KUBECONFIG  a cluster without Refit, whose namespaces refit-system and kruise-daemon-config are made and deleted
//
// and the images that hack/images.sh --tests has pushed.
//
// REFIT_CHART_LOAD=1 adds restarts of ten pods under load, which take 4 minutes.
//
// REFIT_RELEASE=1 runs instead the test of a release in the registry of the cluster, which builds two releases.
//
// REFIT_CHART_PREVIOUS names a tag or commit: an upgrade from its chart and images, and back, is tested too.
package chart

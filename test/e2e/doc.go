// Package e2e tests Refit as its users have it: installed from the manifests of deploy/ on a real cluster, used through
// the API server, judged by what pods, requests and Events say. Nothing of Refit but its wire types may be imported.
//
//	REFIT_E2E=1          run; without it every test is skipped
//	KUBECONFIG           the cluster, whose namespace refit-system is overwritten
//	REFIT_E2E_INSTALL=0  test what is installed already
//	REFIT_E2E_IMAGES     full names of images, instead of those that hack/images.sh has pushed
//	REFIT_VIRTUAL_NODE   program of test/virtualnode: the example pods of deploy/sidecar run on a virtual node
//
// Images are those that hack/images.sh has pushed. Tests that break parts of the cluster run only on one that
// test/cluster has made; those that are about a node's daemon need two nodes.
package e2e

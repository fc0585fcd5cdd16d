package render_test

import (
	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// types are the types of what the chart renders: of Kubernetes, and of the operators whose objects it has.
var types = typesOfObjects()

// untyped are groups of objects that are not decoded: deploy/crd tests the CRDs.
var untyped = map[string]bool{"apiextensions.k8s.io": true}

func typesOfObjects() *runtime.Scheme {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, certmanager.AddToScheme, monitoring.AddToScheme} {
		if err := add(known); err != nil {
			panic(err)
		}
	}
	return known
}

package manager

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

func newScheme() (*runtime.Scheme, error) {
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, authorizationv1.AddToScheme, appsv1.AddToScheme, policyv1.AddToScheme, discoveryv1.AddToScheme, v1alpha1.AddToScheme, v1beta1.AddToScheme, refitv1alpha1.AddToScheme,
	} {
		if err := add(types); err != nil {
			return nil, fmt.Errorf("register types: %w", err)
		}
	}
	return types, nil
}

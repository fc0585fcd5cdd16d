package requests

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

const conversionPath = "/convert"

// addConversion registers the conversion webhook of the CRD.
func addConversion(mgr ctrl.Manager) error {
	newConverter := conversion.NewHubSpokeConverter(&v1beta1.ContainerRecreateRequest{}, conversion.NewSpokeConverter(
		&v1alpha1.ContainerRecreateRequest{},
		func(_ context.Context, src *v1beta1.ContainerRecreateRequest, dst *v1alpha1.ContainerRecreateRequest) error {
			return v1alpha1.ConvertFrom(src, dst)
		},
		func(_ context.Context, src *v1alpha1.ContainerRecreateRequest, dst *v1beta1.ContainerRecreateRequest) error {
			return v1alpha1.ConvertTo(src, dst)
		},
	))
	converter, err := newConverter(mgr.GetScheme())
	if err != nil {
		return err
	}
	registry := mgr.GetConverterRegistry()
	kind := v1beta1.GroupVersion().WithKind(v1beta1.KindContainerRecreateRequest).GroupKind()
	if err := registry.RegisterConverter(kind, converter); err != nil {
		return err
	}
	mgr.GetWebhookServer().Register(conversionPath, conversion.NewWebhookHandler(mgr.GetScheme(), registry))
	return nil
}

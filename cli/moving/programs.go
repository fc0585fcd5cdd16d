package moving

import (
	"cmp"
	"context"
	"errors"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cli/openkruise"
)

// Names of OpenKruise's objects.
const (
	kruiseNamespace  = "kruise-system"
	kruiseManager    = "kruise-controller-manager"
	kruiseDaemon     = "kruise-daemon"
	kruiseConfig     = "kruise-configuration"
	kruiseAllowlist  = "SidecarSet_PatchPodMetadata_WhiteList"
	kruiseMutating   = "kruise-mutating-webhook-configuration"
	kruiseValidating = "kruise-validating-webhook-configuration"
	copiesOfBoth     = "kruise-daemon-config"
)

// programs reads the flags of the programs. If kruise-manager is not a Deployment, its flags are not known.
func (e *examiner) programs(ctx context.Context) error {
	e.kruise = kruiseNamespace
	err := e.each(ctx, &appsv1.DeploymentList{}, func(object client.Object) error {
		if manager, ok := object.(*appsv1.Deployment); ok && manager.Name == kruiseManager {
			e.kruise, e.cluster.Gates = manager.Namespace, openkruise.Gates(manager)
		}
		return nil
	}, client.MatchingLabels{"control-plane": "controller-manager"})
	manager := &appsv1.Deployment{}
	own := e.API.Get(ctx, client.ObjectKey{Namespace: e.System, Name: "refit-manager"}, manager)
	if own == nil {
		e.release = manager.Annotations[openkruise.AnnotationRelease]
		e.cluster.Excluded = []string{e.System}
		for _, container := range manager.Spec.Template.Spec.Containers {
			e.flags(container.Args)
		}
	}
	return errors.Join(err, client.IgnoreNotFound(own))
}

// flags reads the flags of refit-manager, as the chart writes them.
func (e *examiner) flags(args []string) {
	for _, arg := range args {
		if strings.HasPrefix(arg, "--openkruise-revisions") && arg != "--openkruise-revisions=false" {
			e.taken = true
		}
		if namespaces, is := strings.CutPrefix(arg, "--webhook-excluded-namespaces="); is {
			e.cluster.Excluded = append(e.cluster.Excluded, strings.Split(namespaces, ",")...)
		}
	}
}

// webhooks reads the webhook configurations of kruise-manager.
func (e *examiner) webhooks(ctx context.Context) error {
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	errMutating := e.API.Get(ctx, client.ObjectKey{Name: kruiseMutating}, mutating)
	errValidating := e.API.Get(ctx, client.ObjectKey{Name: kruiseValidating}, validating)
	e.found.Add(openkruise.OfWebhooks("MutatingWebhookConfiguration", kruiseMutating, len(mutating.Webhooks))...)
	e.found.Add(openkruise.OfWebhooks("ValidatingWebhookConfiguration", kruiseValidating, len(validating.Webhooks))...)
	return errors.Join(client.IgnoreNotFound(errMutating), client.IgnoreNotFound(errValidating))
}

// kinds reads the CRDs, one at a time since they are large, and counts the objects of their kinds.
func (e *examiner) kinds(ctx context.Context) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
	err := e.each(ctx, list, func(object client.Object) error {
		if !openkruise.HasCRD(object.GetName()) {
			return nil
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := e.API.Get(ctx, client.ObjectKeyFromObject(object), crd); err != nil {
			return client.IgnoreNotFound(err)
		}
		e.kind(ctx, crd)
		return nil
	})
	e.found.Add(openkruise.OfGates(e.cluster.Gates, e.used)...)
	return errors.Join(err, e.daemons(ctx))
}

func (e *examiner) kind(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) {
	version := openkruise.Served(crd)
	if version == "" {
		return
	}
	kind := crd.Spec.Names.Kind
	list := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version, Kind: cmp.Or(crd.Spec.Names.ListKind, kind+"List")}
	objects, err := e.count(ctx, list)
	e.note("objects of "+crd.Name, err)
	if crd.Spec.Group == v1beta1.Group {
		e.served[kind], e.used[kind] = list, objects
	}
	e.found.Add(openkruise.OfCRD(crd, objects, e.release)...)
}

// daemons reads the flags of kruise-daemon.
func (e *examiner) daemons(ctx context.Context) error {
	pulls := e.used["ImagePullJob"].Count+e.used["ImageListPullJob"].Count > 0
	return e.each(ctx, &appsv1.DaemonSetList{}, func(object client.Object) error {
		if daemon, ok := object.(*appsv1.DaemonSet); ok && daemon.Name == kruiseDaemon {
			e.found.Add(openkruise.OfDaemon(daemon, pulls)...)
		}
		return nil
	}, client.MatchingLabels{"control-plane": "daemon"})
}

// allowlist reads whether kruise-manager has an allowlist for patchPodMetadata.
func (e *examiner) allowlist(ctx context.Context) error {
	config := &corev1.ConfigMap{}
	err := e.API.Get(ctx, client.ObjectKey{Namespace: e.kruise, Name: kruiseConfig}, config)
	e.cluster.Allowlist = err == nil && config.Data[kruiseAllowlist] != ""
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

package moving

import (
	"context"
	"errors"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cli/openkruise"
)

// namespaces reads the labels of all namespaces.
func (e *examiner) namespaces(ctx context.Context) error {
	e.cluster.Namespaces = map[string]map[string]string{}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	return e.each(ctx, list, func(object client.Object) error {
		e.cluster.Namespaces[object.GetName()] = object.GetLabels()
		e.found.Add(e.cluster.OfNamespace(object.GetName(), object.GetLabels())...)
		return nil
	})
}

func (e *examiner) nodes(ctx context.Context) error {
	return e.each(ctx, &corev1.NodeList{}, func(object client.Object) error {
		if node, ok := object.(*corev1.Node); ok {
			e.found.Add(openkruise.OfNode(node)...)
		}
		return nil
	})
}

// revisions reads the revisions of SidecarSets in the namespaces of both managers.
func (e *examiner) revisions(ctx context.Context) error {
	read := func(namespace string) (openkruise.Revisions, error) {
		revisions := openkruise.Revisions{}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ControllerRevisionList"))
		return revisions, e.each(ctx, list, func(object client.Object) error {
			revisions.Add(object)
			return nil
		}, client.InNamespace(namespace), client.HasLabels{v1beta1.LabelSidecarSetName})
	}
	var errTheirs, errOurs error
	e.cluster.Theirs, errTheirs = read(e.kruise)
	e.cluster.Ours, errOurs = read(e.System)
	if err := errors.Join(errTheirs, errOurs); err != nil {
		return err
	}
	e.found.Add(e.cluster.OfRevisions(e.kruise, e.System, e.taken)...)
	return nil
}

// sidecarSets keeps all SidecarSets: they are compared with each other, and with pods and templates.
func (e *examiner) sidecarSets(ctx context.Context) error {
	err := e.objects(ctx, v1beta1.KindSidecarSet, func(text []byte) error {
		set := &v1beta1.SidecarSet{}
		if err := decode(text, set); err != nil {
			return err
		}
		set.ManagedFields = nil
		e.cluster.SidecarSets = append(e.cluster.SidecarSets, set)
		return nil
	})
	e.cluster.Prepare()
	for _, set := range e.cluster.SidecarSets {
		e.found.Add(e.cluster.OfSidecarSet(set)...)
	}
	return err
}

func (e *examiner) requests(ctx context.Context) error {
	return e.objects(ctx, "ContainerRecreateRequest", func(text []byte) error {
		request := &v1beta1.ContainerRecreateRequest{}
		if err := decode(text, request); err != nil {
			return err
		}
		e.found.Add(openkruise.OfRequest(request)...)
		return nil
	})
}

func (e *examiner) jobs(ctx context.Context) error {
	readable := map[string]bool{} // by namespace
	read := func(namespace string, template *v1beta1.ImagePullJobTemplate, ended bool) (bool, error) {
		if _, known := readable[namespace]; !known && openkruise.NeedsSecrets(template, ended) {
			bound, err := e.readsSecrets(ctx, namespace)
			if err != nil {
				return false, err
			}
			readable[namespace] = bound
		}
		return readable[namespace], nil
	}
	errJobs := e.objects(ctx, "ImagePullJob", func(text []byte) error {
		job := &v1beta1.ImagePullJob{}
		if err := decode(text, job); err != nil {
			return err
		}
		may, err := read(job.Namespace, &job.Spec.ImagePullJobTemplate, job.Status.CompletionTime != nil)
		e.found.Add(openkruise.OfJob(job, may)...)
		return err
	})
	errLists := e.objects(ctx, "ImageListPullJob", func(text []byte) error {
		list := &v1beta1.ImageListPullJob{}
		if err := decode(text, list); err != nil {
			return err
		}
		may, err := read(list.Namespace, &list.Spec.ImagePullJobTemplate, list.Status.CompletionTime != nil)
		e.found.Add(openkruise.OfList(list, may)...)
		return err
	})
	return errors.Join(errJobs, errLists)
}

// readsSecrets reports whether a RoleBinding of the namespace lets refit-manager read pull secrets.
func (e *examiner) readsSecrets(ctx context.Context, namespace string) (bool, error) {
	bound := false
	err := e.each(ctx, &rbacv1.RoleBindingList{}, func(object client.Object) error {
		binding, ok := object.(*rbacv1.RoleBinding)
		bound = bound || ok && slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool {
			return s.Kind == rbacv1.ServiceAccountKind && s.Name == "refit-manager" && s.Namespace == e.System
		})
		return nil
	}, client.InNamespace(namespace))
	return bound, err
}

func (e *examiner) markers(ctx context.Context) error {
	guarded := map[string]bool{} // by namespace
	var unread error
	err := e.objects(ctx, "PodProbeMarker", func(text []byte) error {
		marker := &v1alpha1.PodProbeMarker{}
		if err := decode(text, marker); err != nil {
			return err
		}
		restricts, known := guarded[marker.Namespace]
		if !known && unread == nil {
			restricts, unread = e.restrictsIngress(ctx, marker.Namespace)
			guarded[marker.Namespace] = restricts
		}
		e.found.Add(openkruise.OfMarker(marker, restricts)...)
		return nil
	})
	e.note("NetworkPolicies", unread)
	return err
}

// restrictsIngress reports whether a NetworkPolicy of the namespace restricts ingress.
func (e *examiner) restrictsIngress(ctx context.Context, namespace string) (bool, error) {
	restricts := false
	err := e.each(ctx, &networkingv1.NetworkPolicyList{}, func(object client.Object) error {
		policy, ok := object.(*networkingv1.NetworkPolicy)
		restricts = restricts || ok && (len(policy.Spec.PolicyTypes) == 0 || slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeIngress))
		return nil
	}, client.InNamespace(namespace))
	return restricts, err
}

// budgets reads PodDisruptionBudgets if SidecarSets are rolled out.
func (e *examiner) budgets(ctx context.Context) error {
	if !e.cluster.Rolled() {
		return nil
	}
	return e.each(ctx, &policyv1.PodDisruptionBudgetList{}, func(object client.Object) error {
		if budget, ok := object.(*policyv1.PodDisruptionBudget); ok {
			e.found.Add(openkruise.OfDisruptionBudget(budget)...)
		}
		return nil
	})
}

// secrets counts the copies of pull secrets that refit-manager has created, without reading them.
func (e *examiner) secrets(ctx context.Context) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	err := e.API.List(ctx, list, client.InNamespace(copiesOfBoth), client.HasLabels{v1beta1.LabelPullSecretCopyBy}, client.Limit(first))
	e.found.Add(openkruise.OfSecretCopies(copiesOfBoth, len(list.Items))...)
	return err
}

// workloads reads the objects with pod templates.
func (e *examiner) workloads(ctx context.Context) error {
	lists := []schema.GroupVersionKind{
		appsv1.SchemeGroupVersion.WithKind("DeploymentList"), appsv1.SchemeGroupVersion.WithKind("StatefulSetList"), appsv1.SchemeGroupVersion.WithKind("DaemonSetList"),
		{Group: "batch", Version: "v1", Kind: "CronJobList"}, {Group: "batch", Version: "v1", Kind: "JobList"},
	}
	for _, kind := range []string{"CloneSet", "StatefulSet", "DaemonSet"} {
		if list, served := e.served[kind]; served {
			lists = append(lists, list)
		}
	}
	var errs []error
	for _, list := range lists {
		errs = append(errs, e.decoded(ctx, list, func(text []byte) error {
			w, err := workload(text)
			if err == nil {
				e.found.Add(e.cluster.OfWorkload(w)...)
			}
			return err
		}))
	}
	return errors.Join(errs...)
}

// workload reads the pod template of one object.
func workload(text []byte) (*openkruise.Workload, error) {
	var object struct {
		Kind     string            `json:"kind"`
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     struct {
			Template    corev1.PodTemplateSpec `json:"template"`
			JobTemplate struct {
				Spec struct {
					Template corev1.PodTemplateSpec `json:"template"`
				} `json:"spec"`
			} `json:"jobTemplate"`
		} `json:"spec"`
	}
	if err := decode(text, &object); err != nil {
		return nil, err
	}
	w := &openkruise.Workload{Kind: object.Kind, Namespace: object.Metadata.Namespace, Name: object.Metadata.Name, Annotations: object.Metadata.Annotations, Template: object.Spec.Template}
	if object.Kind == "CronJob" {
		w.Template = object.Spec.JobTemplate.Spec.Template
	}
	return w, nil
}

func (e *examiner) pods(ctx context.Context) error {
	return e.each(ctx, &corev1.PodList{}, func(object client.Object) error {
		if pod, ok := object.(*corev1.Pod); ok {
			e.found.Add(e.cluster.OfPod(pod, e.Now)...)
		}
		return nil
	})
}

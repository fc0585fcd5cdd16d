// Package admission decides whether a ContainerRecreateRequest may be created or changed, and completes it with what the
// daemon needs to know. It holds decisions only: the pod, the node and the time are arguments.
package admission

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr/requester"
)

// Refusal says why a request is not admitted.
type Refusal struct {
	Code    int32  // HTTP status: 400 for a request that makes no sense, 403 for one that is not allowed, 409 for one that comes too late
	Field   string // path of the rejected field, for example "spec.podName"
	Message string // the rule, and how to comply with it
}

func (r *Refusal) Error() string { return r.Field + ": " + r.Message }

func invalid(field, format string, args ...any) error {
	return &Refusal{Code: http.StatusBadRequest, Field: field, Message: fmt.Sprintf(format, args...)}
}

func forbidden(field, format string, args ...any) error {
	return &Refusal{Code: http.StatusForbidden, Field: field, Message: fmt.Sprintf(format, args...)}
}

// Observation has the objects and values that the caller has looked up for a request that is being created.
type Observation struct {
	Pod  *corev1.Pod        // the pod named by spec.podName; nil if there is none
	Node *metav1.ObjectMeta // the node the pod is bound to; nil if there is none
	User string             // name of the user who creates the request, as authenticated by the API server
	// OnBehalf says that the user is refit-manager, which names the requesting user in an annotation.
	OnBehalf bool
	Now      time.Time // written to the request, to order requests created within one second
}

// Admit decides whether a new request is admitted and returns the request to store: defaults are filled in, and labels,
// preStop hooks and the instances to replace are taken from the pod. It does not change its argument. The error is a
// *Refusal.
//
// Admit refuses requests in which the user has set the fields that Admit fills in. A rule of the CRD cannot do this,
// because CRD validation sees the object after admission has changed it. If the webhook is bypassed, the values are
// used as they are. That is harmless: statusContext only names the instance that counts as the old one, and a daemon
// never stops a container outside the request's namespace and pod.
func Admit(request *v1beta1.ContainerRecreateRequest, observed Observation) (*v1beta1.ContainerRecreateRequest, error) {
	if err := CheckRequest(request); err != nil {
		return nil, err
	}
	if err := checkPod(request, observed); err != nil {
		return nil, err
	}
	out := request.DeepCopy()
	if admittedByAnother(request, observed.Pod) {
		for i := range out.Spec.Containers { // filled in again below; the client's values are not used
			out.Spec.Containers[i] = v1beta1.ContainerRecreateRequestContainer{Name: out.Spec.Containers[i].Name}
		}
	} else if err := checkReadOnly(request); err != nil {
		return nil, err
	}
	out.Status = v1beta1.ContainerRecreateRequestStatus{}
	for _, key := range []string{v1beta1.AnnotationSyncContainerStatuses, v1beta1.AnnotationUnreadyAcquired} {
		delete(out.Annotations, key) // part of the status, which only a manager writes
	}
	setDefaults(&out.Spec, observed.Pod)
	for i := range out.Spec.Containers {
		if err := inject(out, i, observed.Pod); err != nil {
			return nil, err
		}
	}
	if err := checkExpected(out); err != nil {
		return nil, err
	}
	if err := setLabels(out, observed); err != nil {
		return nil, err
	}
	delete(out.Annotations, v1beta1.AnnotationInstances) // only a daemon writes it
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, v1beta1.AnnotationAdmittedAt, observed.Now.UTC().Format(time.RFC3339Nano))
	user := observed.User
	if observed.OnBehalf {
		user = cmp.Or(request.Annotations[v1beta1.AnnotationRequestedBy], user)
	}
	delete(out.Annotations, v1beta1.AnnotationRequestedBy)
	if user = requester.Printable(user); user != "" {
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, v1beta1.AnnotationRequestedBy, user)
	}
	return out, nil
}

// CheckRequest checks the rules that need no other object. It applies to new and to stored requests. The error is a
// *Refusal.
func CheckRequest(request *v1beta1.ContainerRecreateRequest) error {
	spec := request.Spec
	if spec.PodName == "" {
		return invalid("spec.podName", "podName can not be empty: name a pod of namespace %s", request.Namespace)
	}
	if problems := apivalidation.NameIsDNSSubdomain(spec.PodName, false); len(problems) > 0 {
		return invalid("spec.podName", "%.100q is no name of a pod: %s", spec.PodName, problems[0])
	}
	if err := checkContainers(spec.Containers); err != nil {
		return err
	}
	if strategy := spec.Strategy; strategy != nil {
		if err := checkStrategy(strategy); err != nil {
			return err
		}
	}
	if s := spec.ActiveDeadlineSeconds; s != nil && *s < v1beta1.MinActiveDeadlineSeconds {
		return invalid("spec.activeDeadlineSeconds", "activeDeadlineSeconds can not be less than %ds", v1beta1.MinActiveDeadlineSeconds)
	}
	if err := checkSeconds("spec.activeDeadlineSeconds", spec.ActiveDeadlineSeconds); err != nil {
		return err
	}
	if s := spec.TTLSecondsAfterFinished; s != nil && *s < 0 {
		return invalid("spec.ttlSecondsAfterFinished", "ttlSecondsAfterFinished must be non-negative integer")
	}
	return checkAnnotations(request.Annotations)
}

func checkContainers(containers []v1beta1.ContainerRecreateRequestContainer) error {
	const path = "spec.containers"
	if len(containers) == 0 {
		return invalid(path, "containers list can not be null: name at least one container of the pod")
	}
	if len(containers) > v1beta1.MaxContainers {
		return invalid(path, "%d containers in one request: at most %d are allowed", len(containers), v1beta1.MaxContainers)
	}
	seen := make(map[string]bool, len(containers))
	for i, container := range containers {
		field := fmt.Sprintf("%s[%d].name", path, i)
		if problems := validation.IsDNS1123Label(container.Name); len(problems) > 0 {
			return invalid(field, "%.100q is no name of a container: %s", container.Name, problems[0])
		}
		if seen[container.Name] {
			return invalid(field, "can not recreate %s multi times: list it once", container.Name)
		}
		seen[container.Name] = true
	}
	return nil
}

func checkStrategy(strategy *v1beta1.ContainerRecreateRequestStrategy) error {
	const path = "spec.strategy."
	if err := checkSeconds(path+"terminationGracePeriodSeconds", strategy.TerminationGracePeriodSeconds); err != nil {
		return err
	}
	if err := checkSeconds(path+"unreadyGracePeriodSeconds", strategy.UnreadyGracePeriodSeconds); err != nil {
		return err
	}
	if strategy.MinStartedSeconds < 0 {
		return invalid(path+"minStartedSeconds", "minStartedSeconds must be non-negative integer")
	}
	switch strategy.FailurePolicy {
	case "", v1beta1.FailurePolicyFail, v1beta1.FailurePolicyIgnore:
		return nil
	}
	return invalid(path+"failurePolicy", "unknown failurePolicy %.100q: use Fail or Ignore", strategy.FailurePolicy)
}

func checkSeconds(field string, seconds *int64) error {
	if seconds == nil {
		return nil
	}
	name := field[strings.LastIndexByte(field, '.')+1:]
	if *seconds < 0 {
		return invalid(field, "%s must be non-negative integer", name)
	}
	if *seconds > v1beta1.MaxSeconds {
		return invalid(field, "%s must not be more than %d", name, v1beta1.MaxSeconds)
	}
	return nil
}

func checkAnnotations(annotations map[string]string) error {
	const path = "metadata.annotations"
	if err := apivalidation.ValidateAnnotationsSize(annotations); err != nil {
		return invalid(path, "%v", err)
	}
	if reason := annotations[v1beta1.AnnotationReason]; reason != requester.Printable(reason) {
		return invalid(fmt.Sprintf("%s[%s]", path, v1beta1.AnnotationReason), "must be one line of printable characters, at most %d bytes", v1beta1.MaxReason)
	}
	for key, allowed := range map[string][]string{
		v1beta1.AnnotationRestartBackoff: {v1beta1.RestartBackoffRespect, v1beta1.RestartBackoffSkip},
		v1beta1.AnnotationRestartPolicy:  {v1beta1.RestartPolicyOverride},
	} {
		value, ok := annotations[key]
		if ok && !slices.Contains(allowed, value) {
			return invalid(fmt.Sprintf("%s[%s]", path, key), "unknown value %.100q: use %s, or leave the annotation out", value, strings.Join(allowed, " or "))
		}
	}
	return nil
}

// checkReadOnly refuses read-only fields and names all of them, so that the user can correct a request that was dumped
// from the API in one go.
func checkReadOnly(request *v1beta1.ContainerRecreateRequest) error {
	var given []string
	for i, container := range request.Spec.Containers {
		for _, field := range []struct {
			name string
			set  bool
		}{
			{"preStop", container.PreStop != nil},
			{"ports", len(container.Ports) > 0},
			{"statusContext", container.StatusContext != nil},
		} {
			if field.set {
				given = append(given, fmt.Sprintf("spec.containers[%d].%s", i, field.name))
			}
		}
	}
	if len(given) == 0 {
		return nil
	}
	return invalid(given[0], "preStop, ports, statusContext in container are read-only fields, filled in from the pod at admission; delete %s",
		strings.Join(given, ", "))
}

// CheckAdmitted checks that a stored request follows the rules of admission. The webhook may have been disabled when
// the request was created.
func CheckAdmitted(request *v1beta1.ContainerRecreateRequest) error {
	if err := CheckRequest(request); err != nil {
		return err
	}
	for _, key := range []string{v1beta1.LabelPodUID, v1beta1.LabelNodeName} {
		if request.Labels[key] == "" {
			return invalid("metadata.labels["+key+"]", "the label is missing; is the MutatingWebhookConfiguration of refit-manager in place?")
		}
	}
	for i, container := range request.Spec.Containers {
		if container.StatusContext == nil {
			return invalid(fmt.Sprintf("spec.containers[%d].statusContext", i), "the field has not been filled in")
		}
	}
	return nil
}

package podprobe

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/refit-project/refit/api/v1alpha1"
)

const (
	// maxCommand limits a command, in bytes: the probes of a node share one object.
	maxCommand = 16 << 10
	// maxHandler limits a path, a gRPC service, and all headers together, in bytes.
	maxHandler = 4 << 10
)

func checkSelector(path *field.Path, selector *metav1.LabelSelector) field.ErrorList {
	if selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return field.ErrorList{field.Required(path, "an empty selector would select every pod of the namespace")}
	}
	return metavalidation.ValidateLabelSelector(selector, metavalidation.LabelSelectorValidationOptions{}, path)
}

func selectedKeys(selector *metav1.LabelSelector) map[string]bool {
	keys := map[string]bool{}
	if selector == nil {
		return keys
	}
	for key := range selector.MatchLabels {
		keys[key] = true
	}
	for _, e := range selector.MatchExpressions {
		keys[e.Key] = true
	}
	return keys
}

func checkProbe(path *field.Path, p v1alpha1.PodContainerProbe, selected map[string]bool) field.ErrorList {
	var errs field.ErrorList
	if p.Name == "" || strings.Contains(p.Name, "#") || len(p.Name) > validation.DNS1123SubdomainMaxLength {
		errs = append(errs, field.Invalid(path.Child("name"), p.Name, "name must be given, at most 253 characters long, and must not contain '#'"))
	}
	for _, problem := range validation.IsDNS1123Label(p.ContainerName) {
		errs = append(errs, field.Invalid(path.Child("containerName"), p.ContainerName, problem))
	}
	errs = append(errs, checkHandler(path.Child("probe"), p.Probe.ProbeHandler)...)
	errs = append(errs, checkTiming(path.Child("probe"), p.Probe.Probe)...)
	errs = append(errs, checkCondition(path.Child("podConditionType"), p.PodConditionType)...)
	if p.PodConditionType == "" && len(p.MarkerPolicy) == 0 {
		errs = append(errs, field.Required(path, "podConditionType or markerPolicy is required: the result would not be visible"))
	}
	states := map[v1alpha1.ProbeState]bool{}
	for i, policy := range p.MarkerPolicy {
		at := path.Child("markerPolicy").Index(i)
		if states[policy.State] {
			errs = append(errs, field.Duplicate(at.Child("state"), policy.State))
		}
		states[policy.State] = true
		errs = append(errs, checkPolicy(at, policy, selected)...)
	}
	return errs
}

func checkTiming(path *field.Path, p corev1.Probe) field.ErrorList {
	var errs field.ErrorList
	for _, n := range []struct {
		name  string
		value int32
		most  int32
	}{
		{"initialDelaySeconds", p.InitialDelaySeconds, 86400},
		{"timeoutSeconds", p.TimeoutSeconds, 3600},
		{"periodSeconds", p.PeriodSeconds, 86400},
		{"successThreshold", p.SuccessThreshold, 1000},
		{"failureThreshold", p.FailureThreshold, 1000},
	} {
		if n.value < 0 || n.value > n.most {
			errs = append(errs, field.Invalid(path.Child(n.name), n.value, fmt.Sprintf("must be between 0 and %d", n.most)))
		}
	}
	return errs
}

func checkHandler(path *field.Path, h corev1.ProbeHandler) field.ErrorList {
	given := 0
	var errs field.ErrorList
	if h.Exec != nil {
		given++
		errs = append(errs, checkCommand(path.Child("exec", "command"), h.Exec.Command)...)
	}
	if h.HTTPGet != nil {
		given++
		errs = append(errs, checkHTTP(path.Child("httpGet"), h.HTTPGet)...)
	}
	if h.TCPSocket != nil {
		given++
		errs = append(errs, checkAddress(path.Child("tcpSocket"), h.TCPSocket.Host, h.TCPSocket.Port)...)
	}
	if h.GRPC != nil {
		given++
		errs = append(errs, checkAddress(path.Child("grpc"), "", intstr.FromInt32(h.GRPC.Port))...)
		if h.GRPC.Service != nil && len(*h.GRPC.Service) > maxHandler {
			errs = append(errs, field.TooLong(path.Child("grpc", "service"), "", maxHandler))
		}
	}
	if given != 1 {
		errs = append(errs, field.Invalid(path, given, "exactly one of exec, httpGet, tcpSocket and grpc must be given"))
	}
	return errs
}

func checkCommand(path *field.Path, command []string) field.ErrorList {
	if len(command) == 0 {
		return field.ErrorList{field.Required(path, "command must be given")}
	}
	if size := len(strings.Join(command, " ")); size > maxCommand {
		return field.ErrorList{field.TooLong(path, "", maxCommand)}
	}
	return nil
}

func checkHTTP(path *field.Path, get *corev1.HTTPGetAction) field.ErrorList {
	errs := checkAddress(path, get.Host, get.Port)
	if !slices.Contains([]corev1.URIScheme{"", corev1.URISchemeHTTP, corev1.URISchemeHTTPS}, get.Scheme) {
		errs = append(errs, field.NotSupported(path.Child("scheme"), get.Scheme, []corev1.URIScheme{corev1.URISchemeHTTP, corev1.URISchemeHTTPS}))
	}
	if len(get.Path) > maxHandler/2 {
		errs = append(errs, field.TooLong(path.Child("path"), "", maxHandler/2))
	}
	size := 0
	for i, h := range get.HTTPHeaders {
		size += len(h.Name) + len(h.Value)
		for _, problem := range validation.IsHTTPHeaderName(h.Name) {
			errs = append(errs, field.Invalid(path.Child("httpHeaders").Index(i).Child("name"), h.Name, problem))
		}
		if strings.ContainsAny(h.Value, "\r\n\x00") || http.CanonicalHeaderKey(h.Name) == "Content-Length" {
			errs = append(errs, field.Invalid(path.Child("httpHeaders").Index(i), h.Name, "must be one line, and not Content-Length"))
		}
	}
	if size > maxHandler {
		errs = append(errs, field.TooLong(path.Child("httpHeaders"), "", maxHandler))
	}
	return errs
}

// checkAddress refuses a host: a user who may write probes could otherwise make nodes connect to any address.
func checkAddress(path *field.Path, host string, port intstr.IntOrString) field.ErrorList {
	var errs field.ErrorList
	if host != "" {
		errs = append(errs, field.Forbidden(path.Child("host"), "host is not allowed: only the pod itself can be probed"))
	}
	problems := validation.IsValidPortNum(port.IntValue())
	if port.Type == intstr.String {
		problems = validation.IsValidPortName(port.StrVal)
	}
	for _, problem := range problems {
		errs = append(errs, field.Invalid(path.Child("port"), port.String(), problem))
	}
	return errs
}

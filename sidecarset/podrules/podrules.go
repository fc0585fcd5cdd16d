// Package podrules has the rules of Kubernetes for containers and volumes of a pod that no schema expresses: ranges,
// values that depend on each other, and mutually exclusive fields. If a SidecarSet broke one, the API server would
// refuse every pod that it selects.
package podrules

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Container returns the errors of a container that has its defaults. once says that it is an init container that runs once.
func Container(c *corev1.Container, once bool, at *field.Path) field.ErrorList {
	errs := oneOf(c.ImagePullPolicy, at.Child("imagePullPolicy"), corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
	errs = append(errs, oneOf(c.TerminationMessagePolicy, at.Child("terminationMessagePolicy"), corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)...)
	errs = append(errs, ports(c.Ports, at.Child("ports"))...)
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil {
			errs = append(errs, exactlyOne(*from, at.Child("env").Index(i).Child("valueFrom"))...)
		}
	}
	errs = append(errs, resources(&c.Resources, at.Child("resources"))...)
	errs = append(errs, checkProbe(c.LivenessProbe, false, at.Child("livenessProbe"))...)
	errs = append(errs, checkProbe(c.ReadinessProbe, true, at.Child("readinessProbe"))...)
	errs = append(errs, checkProbe(c.StartupProbe, false, at.Child("startupProbe"))...)
	if c.Lifecycle != nil {
		errs = append(errs, hook(c.Lifecycle.PostStart, at.Child("lifecycle", "postStart"))...)
		errs = append(errs, hook(c.Lifecycle.PreStop, at.Child("lifecycle", "preStop"))...)
	}
	if once {
		errs = append(errs, checkOnce(c, at)...)
	}
	return errs
}

// checkOnce checks that a container that runs once has no probes and lifecycle hooks.
func checkOnce(c *corev1.Container, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, f := range []struct {
		name string
		set  bool
	}{{"livenessProbe", c.LivenessProbe != nil}, {"readinessProbe", c.ReadinessProbe != nil}, {"startupProbe", c.StartupProbe != nil}, {"lifecycle", c.Lifecycle != nil}} {
		if f.set {
			errs = append(errs, field.Forbidden(at.Child(f.name), "an init container without restartPolicy Always cannot have it"))
		}
	}
	return errs
}

func oneOf[T ~string](value T, at *field.Path, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, value, allowed)}
}

// given returns the names of the fields that are set in a struct of pointers.
func given(union any) []string {
	var names []string
	value := reflect.ValueOf(union)
	for i := range value.NumField() {
		if value.Field(i).Kind() == reflect.Pointer && !value.Field(i).IsNil() {
			names = append(names, value.Type().Field(i).Name)
		}
	}
	return names
}

func exactlyOne(union any, at *field.Path) field.ErrorList {
	switch names := given(union); len(names) {
	case 0:
		return field.ErrorList{field.Required(at, "one of its fields is required")}
	case 1:
		return nil
	default:
		return field.ErrorList{field.Forbidden(at, fmt.Sprintf("only one of %v can be given", names))}
	}
}

func inRange[T int32 | int64](value, least, most T, at *field.Path) field.ErrorList {
	if value >= least && value <= most {
		return nil
	}
	return field.ErrorList{field.Invalid(at, value, fmt.Sprintf("must be between %d and %d", least, most))}
}

// least checks that a number of seconds or attempts is not below a limit.
func least[T int32 | int64](value, limit T, at *field.Path) field.ErrorList {
	if value >= limit {
		return nil
	}
	return field.ErrorList{field.Invalid(at, value, fmt.Sprintf("must be at least %d", limit))}
}

func ports(list []corev1.ContainerPort, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := map[string]bool{}
	for i := range list {
		p, at := &list[i], at.Index(i)
		errs = append(errs, inRange(p.ContainerPort, 1, 65535, at.Child("containerPort"))...)
		errs = append(errs, inRange(p.HostPort, 0, 65535, at.Child("hostPort"))...)
		errs = append(errs, oneOf(p.Protocol, at.Child("protocol"), corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)...)
		if p.Name == "" {
			continue
		}
		for _, message := range validation.IsValidPortName(p.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), p.Name, message))
		}
		if names[p.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), p.Name))
		}
		names[p.Name] = true
	}
	return errs
}

func resources(r *corev1.ResourceRequirements, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, kind := range []struct {
		name string
		list corev1.ResourceList
	}{{"limits", r.Limits}, {"requests", r.Requests}} {
		for _, name := range slices.Sorted(maps.Keys(kind.list)) {
			quantity, at := kind.list[name], at.Child(kind.name).Key(string(name))
			for _, message := range validation.IsQualifiedName(string(name)) {
				errs = append(errs, field.Invalid(at, string(name), message))
			}
			if quantity.Sign() < 0 {
				errs = append(errs, field.Invalid(at, quantity.String(), "must not be negative"))
			}
			limit, limited := r.Limits[name]
			if kind.name == "requests" && limited && quantity.Cmp(limit) > 0 {
				errs = append(errs, field.Invalid(at, quantity.String(), fmt.Sprintf("must be at most the limit of %s", limit.String())))
			}
		}
	}
	return errs
}

func checkProbe(p *corev1.Probe, readiness bool, at *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	errs := exactlyOne(p.ProbeHandler, at)
	errs = append(errs, checkCommand(p.Exec, at.Child("exec"))...)
	errs = append(errs, checkHTTP(p.HTTPGet, at.Child("httpGet"))...)
	errs = append(errs, checkTCP(p.TCPSocket, at.Child("tcpSocket"))...)
	if p.GRPC != nil {
		errs = append(errs, inRange(p.GRPC.Port, 1, 65535, at.Child("grpc", "port"))...)
	}
	for _, number := range []struct {
		name  string
		value int32
	}{
		{"initialDelaySeconds", p.InitialDelaySeconds}, {"timeoutSeconds", p.TimeoutSeconds}, {"periodSeconds", p.PeriodSeconds},
		{"successThreshold", p.SuccessThreshold}, {"failureThreshold", p.FailureThreshold},
	} {
		errs = append(errs, least(number.value, 0, at.Child(number.name))...)
	}
	if !readiness && p.SuccessThreshold > 1 {
		errs = append(errs, field.Invalid(at.Child("successThreshold"), p.SuccessThreshold, "must be 1"))
	}
	if grace := p.TerminationGracePeriodSeconds; grace != nil {
		errs = append(errs, least(*grace, 1, at.Child("terminationGracePeriodSeconds"))...)
		if readiness {
			errs = append(errs, field.Forbidden(at.Child("terminationGracePeriodSeconds"), "a readiness probe cannot have it"))
		}
	}
	return errs
}

func hook(h *corev1.LifecycleHandler, at *field.Path) field.ErrorList {
	if h == nil {
		return nil
	}
	errs := exactlyOne(*h, at)
	errs = append(errs, checkCommand(h.Exec, at.Child("exec"))...)
	errs = append(errs, checkHTTP(h.HTTPGet, at.Child("httpGet"))...)
	errs = append(errs, checkTCP(h.TCPSocket, at.Child("tcpSocket"))...)
	if h.Sleep != nil {
		errs = append(errs, least(h.Sleep.Seconds, 0, at.Child("sleep", "seconds"))...)
	}
	return errs
}

func checkCommand(exec *corev1.ExecAction, at *field.Path) field.ErrorList {
	if exec == nil || len(exec.Command) > 0 {
		return nil
	}
	return field.ErrorList{field.Required(at.Child("command"), "")}
}

func checkHTTP(get *corev1.HTTPGetAction, at *field.Path) field.ErrorList {
	if get == nil {
		return nil
	}
	errs := port(get.Port, at.Child("port"))
	if get.Scheme != "" { // it is empty in a startup probe, for example, which the API server completes
		errs = append(errs, oneOf(get.Scheme, at.Child("scheme"), corev1.URISchemeHTTP, corev1.URISchemeHTTPS)...)
	}
	for i, header := range get.HTTPHeaders {
		for _, message := range validation.IsHTTPHeaderName(header.Name) {
			errs = append(errs, field.Invalid(at.Child("httpHeaders").Index(i).Child("name"), header.Name, message))
		}
	}
	return errs
}

func checkTCP(socket *corev1.TCPSocketAction, at *field.Path) field.ErrorList {
	if socket == nil {
		return nil
	}
	return port(socket.Port, at.Child("port"))
}

func port(p intstr.IntOrString, at *field.Path) field.ErrorList {
	if p.Type == intstr.Int {
		return inRange(p.IntVal, 1, 65535, at)
	}
	var errs field.ErrorList
	for _, message := range validation.IsValidPortName(p.StrVal) {
		errs = append(errs, field.Invalid(at, p.StrVal, message))
	}
	return errs
}

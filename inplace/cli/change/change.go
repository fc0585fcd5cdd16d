// Package change represents the change that a user requests for a running pod: how it is parsed from the command line,
// how it modifies a pod, and whether a pod already has it.
package change

import (
	"fmt"
	"slices"
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/reported"
	"github.com/refit-project/refit/internal/console"
)

// Change modifies a pod template as the user wants. The error is a [plan.RefusedError], or wraps cli.ErrUsage.
type Change func(pod *corev1.PodTemplateSpec) error

// Image changes images, each given as CONTAINER=IMAGE. CONTAINER "*" means all containers that are kept running.
func Image(pairs []string) (Change, error) {
	images, err := splitPairs(pairs, "CONTAINER=IMAGE")
	if err != nil {
		return nil, err
	}
	for _, pair := range images {
		if _, err := reference.ParseNormalizedNamed(pair.value); err != nil {
			return nil, fmt.Errorf("%w: %s=%s: not a reference of an image: %w", console.ErrUsage, pair.key, pair.value, err)
		}
	}
	return func(pod *corev1.PodTemplateSpec) error {
		for _, pair := range images {
			containers, err := pick(pod, pair.key)
			if err != nil {
				return err
			}
			for _, container := range containers {
				container.Image = pair.value
			}
		}
		return nil
	}, nil
}

// Sizes is the argument of Resources. Each element is given as "cpu=200m,memory=256Mi".
type Sizes struct {
	Containers       []string // empty means all
	Requests, Limits string
}

// Resources changes requests and limits of CPU and memory. Other values do not change.
func Resources(to Sizes) (Change, error) {
	requests, err := quantities("--requests", to.Requests)
	if err != nil {
		return nil, err
	}
	limits, err := quantities("--limits", to.Limits)
	if err != nil {
		return nil, err
	}
	if len(requests)+len(limits) == 0 {
		return nil, fmt.Errorf("%w: name requests, limits or both, as --requests=cpu=200m,memory=256Mi", console.ErrUsage)
	}
	names := to.Containers
	if len(names) == 0 {
		names = []string{"*"}
	}
	return func(pod *corev1.PodTemplateSpec) error {
		for _, name := range names {
			containers, err := pick(pod, name)
			if err != nil {
				return err
			}
			for _, container := range containers {
				container.Resources.Requests = with(container.Resources.Requests, requests)
				container.Resources.Limits = with(container.Resources.Limits, limits)
			}
		}
		return nil
	}, nil
}

func with(list, changes corev1.ResourceList) corev1.ResourceList {
	if list == nil && len(changes) > 0 {
		list = corev1.ResourceList{}
	}
	for name, quantity := range changes {
		list[name] = quantity
	}
	return list
}

func quantities(flag, text string) (corev1.ResourceList, error) {
	if text == "" {
		return nil, nil
	}
	pairs, err := splitPairs(strings.Split(text, ","), "RESOURCE=QUANTITY")
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %s", console.ErrUsage, flag, console.Message(err))
	}
	list := corev1.ResourceList{}
	for _, pair := range pairs {
		quantity, err := resource.ParseQuantity(pair.value)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %s=%s: want a quantity, such as 500m or 2 for cpu, 256Mi for memory", console.ErrUsage, flag, pair.key, pair.value)
		}
		list[corev1.ResourceName(pair.key)] = quantity
	}
	return list, nil
}

// Env changes environment variables, each given as NAME=VALUE, of containers that take them from a label or an
// annotation of the pod. It changes that label or annotation.
func Env(containers, pairs []string) (Change, error) {
	values, err := splitPairs(pairs, "NAME=VALUE")
	if err != nil {
		return nil, err
	}
	if len(containers) == 0 {
		containers = []string{"*"}
	}
	return func(pod *corev1.PodTemplateSpec) error {
		for _, pair := range values {
			found := false
			for _, name := range containers {
				picked, err := pick(pod, name)
				if err != nil {
					return err
				}
				for _, container := range picked {
					if !slices.Contains(Running(pod), container) {
						return refuseInit(container.Name, pair.key)
					}
					found = setMetadata(pod, container, pair) || found
				}
			}
			if !found {
				return refuseEnv(pod, containers, pair.key)
			}
		}
		return nil
	}, nil
}

func setMetadata(pod *corev1.PodTemplateSpec, container *corev1.Container, pair pair) bool {
	found := false
	for _, env := range reported.MetadataEnvs(container) {
		if env.Name != pair.key {
			continue
		}
		found = true
		into := &pod.Labels
		if env.Annotation {
			into = &pod.Annotations
		}
		if *into == nil {
			*into = map[string]string{}
		}
		(*into)[env.Key] = pair.value
	}
	return found
}

// refuseInit returns the error for a variable of an init container, which has run and does not run again.
func refuseInit(container, name string) error {
	return &plan.RefusedError{Refusals: []plan.Refusal{{
		Field: "env " + name, Reason: plan.ReasonInitContainer, Why: fmt.Sprintf("init container %s runs once, before the others, and is not run again", container),
		Instead: "name other containers, or recreate the pod",
	}}}
}

// refuseEnv returns why a variable cannot be changed: no container has it, or its value is in the spec.
func refuseEnv(pod *corev1.PodTemplateSpec, containers []string, name string) error {
	refusal := plan.Refusal{
		Field: "env " + name, Reason: plan.ReasonImmutableField, Why: "no container has this variable",
		Instead: "variables cannot be added to a running pod; recreate the pod",
	}
	named := !slices.Contains(containers, "*")
	if named {
		refusal.Why = fmt.Sprintf("%s not have this variable", does(containers))
	}
	for _, container := range All(pod) {
		if named && !slices.Contains(containers, container.Name) {
			continue
		}
		for _, env := range container.Env {
			if env.Name == name {
				refusal.Why = fmt.Sprintf("its value in container %s comes neither from a label nor from an annotation of the pod, and cannot be changed in a running pod", container.Name)
				refusal.Instead = "recreate the pod, and let the variable refer to an annotation (valueFrom.fieldRef metadata.annotations['KEY'])"
			}
		}
	}
	return &plan.RefusedError{Refusals: []plan.Refusal{refusal}}
}

func does(containers []string) string {
	if len(containers) == 1 {
		return "container " + containers[0] + " does"
	}
	return "containers " + strings.Join(containers, ", ") + " do"
}

// All returns the containers that are kept running, and the init containers.
func All(pod *corev1.PodTemplateSpec) []*corev1.Container {
	var containers []*corev1.Container
	for i := range pod.Spec.InitContainers {
		containers = append(containers, &pod.Spec.InitContainers[i])
	}
	for i := range pod.Spec.Containers {
		containers = append(containers, &pod.Spec.Containers[i])
	}
	return containers
}

// Running returns the containers that are kept running: native sidecars and regular containers.
func Running(pod *corev1.PodTemplateSpec) []*corev1.Container {
	return slices.DeleteFunc(All(pod), func(c *corev1.Container) bool {
		init := slices.ContainsFunc(pod.Spec.InitContainers, func(i corev1.Container) bool { return i.Name == c.Name })
		return init && (c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways)
	})
}

// pick returns the container with this name; "*" means all containers that are kept running.
func pick(pod *corev1.PodTemplateSpec, name string) ([]*corev1.Container, error) {
	if name == "*" {
		return Running(pod), nil
	}
	for _, container := range All(pod) {
		if container.Name == name {
			return []*corev1.Container{container}, nil
		}
	}
	return nil, noContainer(pod, name)
}

// noContainer returns the error for a name that no container of the pod has.
func noContainer(pod *corev1.PodTemplateSpec, name string) error {
	var names []string
	for _, container := range All(pod) {
		names = append(names, container.Name)
	}
	slices.Sort(names)
	return fmt.Errorf("%w: the pod has no container %q; it has %s", console.ErrUsage, name, strings.Join(names, ", "))
}

type pair struct{ key, value string }

func splitPairs(texts []string, form string) ([]pair, error) {
	var pairs []pair
	for _, text := range texts {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("%w: %q: want %s", console.ErrUsage, text, form)
		}
		key = strings.TrimSpace(key)
		if slices.ContainsFunc(pairs, func(p pair) bool { return p.key == key }) {
			return nil, fmt.Errorf("%w: %s is given twice in %s", console.ErrUsage, key, strings.Join(texts, " "))
		}
		pairs = append(pairs, pair{key, value})
	}
	if len(pairs) == 0 {
		return nil, fmt.Errorf("%w: want at least one %s", console.ErrUsage, form)
	}
	return pairs, nil
}

// Groups parses the order of containers. Each element is a group, whose names are separated by commas.
func Groups(texts []string) [][]string {
	var groups [][]string
	for _, text := range texts {
		groups = append(groups, strings.Split(text, ","))
	}
	return groups
}

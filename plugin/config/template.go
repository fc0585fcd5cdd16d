package config

import (
	"errors"
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
)

// Lookup returns the value of ${kind:name}.
type Lookup func(kind, name string) (string, error)

var expression = regexp.MustCompile(`\$\{(SELF|POD):([^}]+)\}`)

// expand fills in all expressions of a text. Braces with another prefix are left unchanged.
func expand(text string, lookup Lookup) (string, error) {
	var firstErr error
	expanded := expression.ReplaceAllStringFunc(text, func(match string) string {
		parts := expression.FindStringSubmatch(match)
		value, err := lookup(parts[1], parts[2])
		if err != nil && firstErr == nil {
			firstErr = fmt.Errorf("%s: %w", match, err)
		}
		return value
	})
	return expanded, firstErr
}

// ErrPodNotRead is the error of a Lookup for values of a pod that has not been read yet.
var ErrPodNotRead = errors.New("the pod has not been read")

// NewLookup returns a Lookup that finds ${SELF:X} in this program's environment, and ${POD:X} in the environment of the
// pod's containers: the first one that gives X a literal value. A nil pod has not been read.
func NewLookup(environ func(string) (string, bool), pod *corev1.Pod) Lookup {
	return func(kind, name string) (string, error) {
		if kind == "SELF" {
			if value, ok := environ(name); ok {
				return value, nil
			}
			return "", fmt.Errorf("the environment of this program has no %s", name)
		}
		if pod == nil {
			return "", ErrPodNotRead
		}
		from := ""
		for _, container := range pod.Spec.Containers {
			for _, env := range container.Env {
				switch {
				case env.Name == name && env.ValueFrom == nil:
					return env.Value, nil
				case env.Name == name:
					from = container.Name
				}
			}
		}
		if from != "" {
			return "", fmt.Errorf("container %s takes %s from elsewhere (valueFrom), only literal values can be seen", from, name)
		}
		return "", fmt.Errorf("no container of the pod has %s in its env", name)
	}
}

// Unresolved is a Lookup that leaves expressions unchanged, for checking a file without a pod.
func Unresolved(kind, name string) (string, error) { return "${" + kind + ":" + name + "}", nil }

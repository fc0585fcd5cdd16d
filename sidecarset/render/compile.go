package render

import (
	"errors"
	"fmt"
	"io"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/sidecarset/policy"
)

// Compile writes the MutatingAdmissionPolicies of the SidecarSets, see [policy.Compile]. It writes nothing if one of them cannot be compiled.
func Compile(out io.Writer, in *Objects, namespace string, excluded []string, now time.Time) error {
	if len(in.SidecarSets) == 0 {
		return errors.New("the files have no SidecarSet")
	}
	var manifests []byte
	var failures []error
	for _, set := range in.SidecarSets {
		compiled, errs := policy.Compile(set, namespace, excluded, now)
		if len(errs) > 0 {
			failures = append(failures, fmt.Errorf("SidecarSet %s cannot be compiled: %w", set.Name, errs.ToAggregate()))
			continue
		}
		for _, object := range []any{compiled.Policy, compiled.Binding} {
			text, err := yaml.Marshal(object)
			if err != nil {
				return fmt.Errorf("write YAML: %w", err)
			}
			manifests = append(append(manifests, "---\n"...), text...)
		}
	}
	if err := errors.Join(failures...); err != nil {
		return err
	}
	_, err := out.Write(manifests)
	return err
}

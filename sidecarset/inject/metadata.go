package inject

import (
	"encoding/json"
	"maps"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/must"
	"github.com/refit-project/refit/sidecarset/podmeta"
	"github.com/refit-project/refit/sidecarset/subset"
)

// patchMetadata applies patchPodMetadata of all SidecarSets.
func (in *injection) patchMetadata() error {
	for _, set := range in.plan.Sets {
		for _, patch := range set.spec.PatchPodMetadata {
			for _, key := range slices.Sorted(maps.Keys(patch.Annotations)) {
				value, err := podmeta.PatchAnnotation(in.annotations, key, patch.Annotations[key], patch.PatchPolicy)
				if err != nil {
					return refuse(set.name, "metadata.annotations["+key+"]", "patchPodMetadata cannot be applied: %v", err)
				}
				in.setAnnotation(key, value)
			}
			for _, key := range slices.Sorted(maps.Keys(patch.Labels)) {
				if _, ok := in.labels[key]; !ok || patch.PatchPolicy == v1beta1.PatchOverwrite {
					in.setLabel(key, patch.Labels[key])
				}
			}
		}
	}
	return nil
}

// patchContainers adds environment variables and mounts to the pod's own containers.
func (in *injection) patchContainers() error {
	for _, set := range in.plan.Sets {
		for i := range set.spec.PatchContainers {
			patch := &set.spec.PatchContainers[i]
			lists := map[string][]container{pathContainers: in.containers}
			if patch.InitContainers {
				lists[pathInitContainers] = in.initContainers
			}
			for _, listPath := range []string{pathContainers, pathInitContainers} {
				for at := range lists[listPath] {
					c := &lists[listPath][at]
					if c.set != nil || !set.patterns[i].MatchString(c.name) {
						continue
					}
					if err := in.patchContainer(set, patch, listPath, c); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

func (in *injection) patchContainer(set *Set, patch *v1beta1.SidecarSetPatchContainer, listPath string, c *container) error {
	policy := set.conflicts()
	if policy == v1beta1.ConflictFail && in.carries(set) {
		policy = v1beta1.ConflictOverride // the present value may be from an earlier version of the SidecarSet
	}
	var env []corev1.EnvVar
	for _, e := range patch.Env {
		had := allNamed(c.spec.Env, e.Name)
		switch {
		case len(had) > 0 && (allEqual(had, e) || policy == v1beta1.ConflictKeepPod):
			continue
		case len(had) > 0 && policy == v1beta1.ConflictFail:
			return refuse(set.name, "spec.containers["+c.name+"].env", "the container has another value of %s; set injectionStrategy.conflictPolicy of the SidecarSet", e.Name)
		}
		env = append(env, e)
	}
	var mounts []corev1.VolumeMount
	for _, m := range patch.VolumeMounts {
		at := slices.IndexFunc(c.spec.VolumeMounts, func(has corev1.VolumeMount) bool { return path.Clean(has.MountPath) == path.Clean(m.MountPath) })
		switch {
		case at >= 0 && (subset.Equal(must.JSON(c.spec.VolumeMounts[at]), m) || policy == v1beta1.ConflictKeepPod):
			continue
		case at >= 0 && policy == v1beta1.ConflictFail:
			return refuse(set.name, "spec.containers["+c.name+"].volumeMounts", "the container mounts something else at %s; set injectionStrategy.conflictPolicy of the SidecarSet", m.MountPath)
		}
		mounts = append(mounts, m)
	}
	if err := in.addVolumes(set, mounts, nil); err != nil {
		return err
	}
	if len(env)+len(mounts) == 0 {
		return nil
	}
	in.changed[listPath] = true
	return c.add(env, mounts)
}

func allEqual(list []corev1.EnvVar, wanted corev1.EnvVar) bool {
	return !slices.ContainsFunc(list, func(has corev1.EnvVar) bool { return !subset.Equal(must.JSON(has), wanted) })
}

// add adds variables and mounts to a container of the pod, and replaces those with the same name or path. The rest of
// its JSON does not change.
func (c *container) add(env []corev1.EnvVar, mounts []corev1.VolumeMount) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(c.raw, &fields); err != nil {
		return err
	}
	replace := func(field, key string, same func(a, b string) bool, added map[string]any, order []string) error {
		var list []json.RawMessage
		if fields[field] != nil {
			if err := json.Unmarshal(fields[field], &list); err != nil {
				return err
			}
		}
		for _, name := range order {
			raw := must.JSON(added[name])
			is := func(element json.RawMessage) bool {
				var object map[string]any
				text, ok := "", json.Unmarshal(element, &object) == nil
				if ok {
					text, ok = object[key].(string)
				}
				return ok && same(text, name)
			}
			if at := slices.IndexFunc(list, is); at >= 0 {
				list[at] = raw
				list = append(list[:at+1], slices.DeleteFunc(list[at+1:], is)...) // remove the others: the last one would be effective
			} else {
				list = append(list, raw)
			}
		}
		if len(order) > 0 {
			fields[field] = must.JSON(list)
		}
		return nil
	}
	envs, names := map[string]any{}, []string{}
	for _, e := range env {
		envs[e.Name], names = e, append(names, e.Name)
	}
	if err := replace("env", "name", func(a, b string) bool { return a == b }, envs, names); err != nil {
		return err
	}
	at, paths := map[string]any{}, []string{}
	for _, m := range mounts {
		at[m.MountPath], paths = m, append(paths, m.MountPath)
	}
	if err := replace("volumeMounts", "mountPath", func(a, b string) bool { return path.Clean(a) == path.Clean(b) }, at, paths); err != nil {
		return err
	}
	c.raw = must.JSON(fields)
	var spec corev1.Container
	if err := json.Unmarshal(c.raw, &spec); err != nil {
		return err
	}
	c.spec = &spec
	return nil
}

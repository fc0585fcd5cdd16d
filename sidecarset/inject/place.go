package inject

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/must"
	"github.com/refit-project/refit/sidecarset/subset"
)

// place puts the built containers into the pod.
func (in *injection) place() error {
	for _, list := range []struct {
		path  string
		into  *[]container
		added []built
	}{{pathInitContainers, &in.initContainers, in.initial}, {pathContainers, &in.containers, in.regular}} {
		placed, err := in.placeAll(list.path, *list.into, list.added)
		if err != nil {
			return err
		}
		*list.into = placed
	}
	for _, list := range []struct {
		path string
		of   *[]container
	}{{pathInitContainers, &in.initContainers}, {pathContainers, &in.containers}} {
		var kept []container
		for _, c := range *list.of {
			if c.old {
				in.changed[list.path] = true // the SidecarSet no longer has it
				continue
			}
			kept = append(kept, c)
		}
		*list.of = kept
	}
	return nil
}

// placeAll inserts containers before or after the pod's own ones, or in place of previously injected ones.
func (in *injection) placeAll(path string, list []container, added []built) ([]container, error) {
	var before, behind []container
	for _, b := range added {
		if at := find(list, b.spec.Name); at >= 0 && list[at].old {
			list[at].old, list[at].set = false, b.set
			same, err := in.same(&list[at], b)
			if err != nil {
				return nil, err
			}
			if !same {
				list[at].spec, list[at].more, list[at].raw = b.spec, b.more, nil
				in.changed[path] = true
			}
			continue
		}
		inject, err := in.mayInject(path, b, append(append([]container(nil), before...), behind...))
		if err != nil {
			return nil, err
		}
		if !inject {
			continue
		}
		in.changed[path] = true
		c := container{name: b.spec.Name, spec: b.spec, more: b.more, set: b.set}
		if at := find(list, c.name); at >= 0 {
			list[at] = c // Override
			continue
		}
		if b.before {
			before = append(before, c)
		} else {
			behind = append(behind, c)
		}
	}
	return append(append(before, list...), behind...), nil
}

// same reports whether an old container of the pod is equal to the one that would be injected.
func (in *injection) same(has *container, b built) (bool, error) {
	if in.claims.Ours(b.set.name, has.name) {
		wanted, err := encodeContainer(b.spec, b.more)
		return subset.Covers(has.raw, wanted), err
	}
	wanted, err := encodeContainer(in.claims.Expected(has.spec, b.spec), b.more)
	return subset.Equal(has.raw, wanted), err
}

// mayInject decides whether a container whose name is already used is injected. With Override, it removes a container
// of the pod from the other list.
func (in *injection) mayInject(path string, b built, placed []container) (bool, error) {
	policy, name := b.set.conflicts(), b.spec.Name
	other, otherPath := &in.initContainers, pathInitContainers
	if path == pathInitContainers {
		other, otherPath = &in.containers, pathContainers
	}
	for _, list := range [][]container{placed, in.containers, in.initContainers} {
		at := find(list, name)
		if at < 0 || list[at].set == nil {
			continue
		}
		if policy == v1beta1.ConflictKeepPod {
			in.keep(b, "the one of SidecarSet "+list[at].set.name)
			return false, nil
		}
		return false, refuse(b.set.name, "spec.containers", "SidecarSet %s has injected a container %s already", list[at].set.name, name)
	}
	here, there := find(in.list(path), name), find(*other, name)
	if here < 0 && there < 0 {
		return true, nil
	}
	if there >= 0 && (*other)[there].old {
		return true, nil // place removes the other container
	}
	switch policy {
	case v1beta1.ConflictKeepPod:
		in.keep(b, "its own")
		return false, nil
	case v1beta1.ConflictOverride:
		in.warnings = append(in.warnings, "SidecarSet "+b.set.name+" replaces the container "+name+" of the pod")
		if there >= 0 {
			*other = append((*other)[:there:there], (*other)[there+1:]...)
			in.changed[otherPath] = true
		}
		return true, nil
	}
	return false, refuse(b.set.name, "spec.containers",
		"the pod has a container %s; rename it, or set injectionStrategy.conflictPolicy of the SidecarSet", name)
}

// keep records that a sidecar is left out, so that the pod's container is not mistaken for it later.
func (in *injection) keep(b built, whose string) {
	in.kept[b.set.name+"/"+b.source] = true
	in.warnings = append(in.warnings, "SidecarSet "+b.set.name+" does not inject the container "+b.spec.Name+": the pod keeps "+whose)
}

func (in *injection) list(path string) []container {
	if path == pathInitContainers {
		return in.initContainers
	}
	return in.containers
}

func find(list []container, name string) int {
	for i := range list {
		if list[i].name == name {
			return i
		}
	}
	return -1
}

// addVolumes adds the mounted volumes of a SidecarSet, and checks that the pod has the others.
func (in *injection) addVolumes(set *Set, mounts []corev1.VolumeMount, devices []corev1.VolumeDevice) error {
	names := make([]string, 0, len(mounts)+len(devices))
	for _, mount := range mounts {
		names = append(names, mount.Name)
	}
	for _, device := range devices {
		names = append(names, device.Name)
	}
	for _, name := range names {
		if err := in.addVolume(set, name); err != nil {
			return err
		}
	}
	return nil
}

func (in *injection) addVolume(set *Set, name string) error {
	at := -1
	for i := range in.volumes {
		if in.volumes[i].name == name {
			at = i
		}
	}
	wanted := set.volume(name)
	switch {
	case wanted == nil && at < 0:
		return refuse(set.name, "spec.volumes", "a sidecar mounts the volume %s, which neither the pod nor the SidecarSet has", name)
	case wanted == nil:
		return nil
	case at < 0:
		in.volumes = append(in.volumes, volume{name: name, spec: wanted, set: set.name})
		in.changed[pathVolumes] = true
		return nil
	}
	has := &in.volumes[at]
	raw := has.raw
	if raw == nil {
		raw = must.JSON(has.spec)
	}
	if in.claims.SameVolume(set.name, has.raw != nil && in.carries(set), raw, wanted) {
		return nil
	}
	if has.set != "" {
		return refuse(set.name, "spec.volumes", "SidecarSet %s has added another volume %s", has.set, name)
	}
	switch policy := set.conflicts(); {
	case policy == v1beta1.ConflictKeepPod:
		return nil
	case policy == v1beta1.ConflictOverride || in.carries(set): // the latter if the pod was created from the manifest of an injected one
		*has = volume{name: name, spec: wanted, set: set.name}
		in.changed[pathVolumes] = true
		return nil
	}
	return refuse(set.name, "spec.volumes", "the pod has another volume %s; rename it, or set injectionStrategy.conflictPolicy of the SidecarSet", name)
}

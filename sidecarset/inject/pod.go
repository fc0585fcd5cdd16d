package inject

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
)

// Operation is an operation of a JSON patch (RFC 6902).
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// document is a pod under construction.
type document struct {
	pod *corev1.Pod // as it was sent

	containers, initContainers []container
	volumes                    []volume
	secrets                    []json.RawMessage
	secretNames                map[string]bool
	annotations, labels        map[string]string

	changed map[string]bool // paths of the parts to write
}

// container is a container of a pod.
type container struct {
	name string
	raw  json.RawMessage       // only for containers that the pod brought
	spec *corev1.Container     // decoded
	more v1beta1.UnknownFields // only without raw: fields that spec cannot have
	set  *Set                  // the SidecarSet that has injected it; nil for the pod's own
	old  bool                  // injected before according to the pod's annotations, and not confirmed yet
}

type volume struct {
	name string
	raw  json.RawMessage
	spec *corev1.Volume
	set  string // name of the SidecarSet that has added it; empty for the pod's own
}

// Parts of a pod that are written as a whole.
const (
	pathContainers     = "/spec/containers"
	pathInitContainers = "/spec/initContainers"
	pathVolumes        = "/spec/volumes"
	pathSecrets        = "/spec/imagePullSecrets" //nolint:gosec // a path
	pathAnnotations    = "/metadata/annotations"
	pathLabels         = "/metadata/labels"
)

// paths lists the parts in the order in which they are written.
var paths = []string{pathLabels, pathAnnotations, pathInitContainers, pathContainers, pathVolumes, pathSecrets}

func parsePod(raw []byte) (*document, error) {
	d := &document{pod: &corev1.Pod{}, changed: map[string]bool{}, secretNames: map[string]bool{}}
	if err := json.Unmarshal(raw, d.pod); err != nil {
		return nil, fmt.Errorf("decode pod: %w", err)
	}
	var parts struct {
		Spec struct {
			Containers       []json.RawMessage `json:"containers"`
			InitContainers   []json.RawMessage `json:"initContainers"`
			Volumes          []json.RawMessage `json:"volumes"`
			ImagePullSecrets []json.RawMessage `json:"imagePullSecrets"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return nil, fmt.Errorf("decode pod: %w", err)
	}
	d.containers = pair(parts.Spec.Containers, d.pod.Spec.Containers)
	d.initContainers = pair(parts.Spec.InitContainers, d.pod.Spec.InitContainers)
	for i := range d.pod.Spec.Volumes {
		d.volumes = append(d.volumes, volume{name: d.pod.Spec.Volumes[i].Name, raw: parts.Spec.Volumes[i], spec: &d.pod.Spec.Volumes[i]})
	}
	d.secrets = parts.Spec.ImagePullSecrets
	for _, secret := range d.pod.Spec.ImagePullSecrets {
		d.secretNames[secret.Name] = true
	}
	return d, nil
}

func pair(raw []json.RawMessage, specs []corev1.Container) []container {
	list := make([]container, 0, len(raw))
	for i := range specs {
		list = append(list, container{name: specs[i].Name, raw: raw[i], spec: &specs[i]})
	}
	return list
}

// operations returns the patch, which is empty if nothing has changed.
func (d *document) operations() ([]Operation, error) {
	var list []Operation
	for _, path := range paths {
		if !d.changed[path] {
			continue
		}
		value, err := d.value(path)
		if err != nil {
			return nil, err
		}
		list = append(list, Operation{Op: "add", Path: path, Value: value}) // replaces an existing member
	}
	return list, nil
}

func (d *document) value(path string) (any, error) {
	switch path {
	case pathContainers:
		return encode(d.containers)
	case pathInitContainers:
		return encode(d.initContainers)
	case pathVolumes:
		list := make([]any, 0, len(d.volumes))
		for _, v := range d.volumes {
			if v.raw != nil {
				list = append(list, v.raw)
			} else {
				list = append(list, v.spec)
			}
		}
		return list, nil
	case pathSecrets:
		return d.secrets, nil
	case pathAnnotations:
		return d.annotations, nil
	}
	return d.labels, nil
}

func encode(containers []container) ([]json.RawMessage, error) {
	list := make([]json.RawMessage, 0, len(containers))
	for _, c := range containers {
		raw := c.raw
		if raw == nil {
			var err error
			if raw, err = encodeContainer(c.spec, c.more); err != nil {
				return nil, err
			}
		}
		list = append(list, raw)
	}
	return list, nil
}

func encodeContainer(spec *corev1.Container, more v1beta1.UnknownFields) (json.RawMessage, error) {
	raw, err := json.Marshal(spec)
	if err == nil {
		raw, err = more.Append(raw)
	}
	if err != nil {
		return nil, fmt.Errorf("encode container %s: %w", spec.Name, err)
	}
	return raw, nil
}

// own returns the pod's own containers, which no SidecarSet has injected.
func own(containers []container) []*corev1.Container {
	var list []*corev1.Container
	for i := range containers {
		if containers[i].set == nil && !containers[i].old {
			list = append(list, containers[i].spec)
		}
	}
	return list
}

func (d *document) setAnnotation(key, value string) {
	if had, ok := d.annotations[key]; !ok || had != value {
		d.annotations[key] = value
		d.changed[pathAnnotations] = true
	}
}

func (d *document) setLabel(key, value string) {
	if had, ok := d.labels[key]; !ok || had != value {
		d.labels[key] = value
		d.changed[pathLabels] = true
	}
}

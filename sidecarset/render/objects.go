package render

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/v1beta1"
)

// Objects are the objects read from files.
type Objects struct {
	Pod         json.RawMessage
	SidecarSets []*v1beta1.SidecarSet
	Namespaces  map[string]map[string]string // labels by name
}

// Read adds the objects of a file, YAML or JSON: SidecarSets, Namespaces, Pods and objects with a pod template. Of
// several pods it uses the last.
func (o *Objects) Read(content []byte) error {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read YAML: %w", err)
		}
		raw, err := yaml.YAMLToJSON(document)
		if err != nil {
			return fmt.Errorf("read YAML: %w", err)
		}
		if err := o.add(raw); err != nil {
			return err
		}
	}
}

func (o *Objects) add(raw []byte) error {
	var header struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Items             []json.RawMessage `json:"items"`
		Spec              struct {
			Template *struct {
				Metadata json.RawMessage `json:"metadata,omitempty"`
				Spec     json.RawMessage `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
	}
	if bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		return nil // an empty document
	}
	if err := json.Unmarshal(raw, &header); err != nil {
		return fmt.Errorf("decode object: %w", err)
	}
	switch {
	case header.Kind == v1beta1.KindSidecarSet:
		var set v1beta1.SidecarSet
		if err := yaml.UnmarshalStrict(raw, &set); err != nil {
			return fmt.Errorf("decode SidecarSet %s: %w", header.Name, err)
		}
		o.SidecarSets = append(o.SidecarSets, &set)
	case header.Kind == "Namespace":
		if o.Namespaces == nil {
			o.Namespaces = map[string]map[string]string{}
		}
		o.Namespaces[header.Name] = map[string]string{corev1.LabelMetadataName: header.Name}
		for key, value := range header.Labels {
			o.Namespaces[header.Name][key] = value
		}
	case header.Kind == "Pod":
		o.Pod = raw
	case header.Spec.Template != nil:
		return o.fromTemplate(header.Namespace, header.Spec.Template)
	}
	for _, item := range header.Items {
		if err := o.add(item); err != nil {
			return err
		}
	}
	return nil
}

// fromTemplate sets the pod that a controller would create.
func (o *Objects) fromTemplate(namespace string, template any) error {
	raw, err := json.Marshal(template)
	if err != nil {
		return fmt.Errorf("encode template: %w", err)
	}
	var pod map[string]any
	if err := json.Unmarshal(raw, &pod); err != nil {
		return fmt.Errorf("decode template: %w", err)
	}
	metadata, ok := pod["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
	}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	pod["apiVersion"], pod["kind"], pod["metadata"] = "v1", "Pod", metadata
	o.Pod, err = json.Marshal(pod)
	return err
}

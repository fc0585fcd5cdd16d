package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	yamlnodes "go.yaml.in/yaml/v3"
	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"sigs.k8s.io/yaml"
)

// digestsFile is where the template refit.image looks for digests.
const digestsFile = "files/digests.yaml"

// images of a release.
type images struct {
	repository string            // HOST/FOLDER
	digests    map[string]string // by name
}

var digest = regexp.MustCompile(`^([a-z-]+)=(sha256:[0-9a-f]{64})$`)

// add reads NAME=DIGEST.
func (i *images) add(value string) error {
	match := digest.FindStringSubmatch(value)
	if match == nil {
		return fmt.Errorf("%q: want NAME=sha256:DIGEST", value)
	}
	if i.digests == nil {
		i.digests = map[string]string{}
	}
	i.digests[match[1]] = match[2]
	return nil
}

// pin makes the chart install exactly these images, unless its values say otherwise.
func (i *images) pin(chart *chartv2.Chart) error {
	if len(i.digests) > 0 {
		content, err := yaml.Marshal(i.digests)
		if err != nil {
			return err
		}
		chart.Files = append(chart.Files, &common.File{Name: digestsFile, Data: content})
	}
	if i.repository == "" {
		return nil
	}
	registry, folder, _ := strings.Cut(i.repository, "/")
	for _, file := range chart.Raw {
		if file.Name != "values.yaml" {
			continue
		}
		for key, value := range map[string]string{"registry": registry, "repository": folder} {
			changed, err := set(file.Data, value, "image", key)
			if err != nil {
				return err
			}
			file.Data = changed
		}
		return yaml.Unmarshal(file.Data, &chart.Values)
	}
	return fmt.Errorf("the chart has no values.yaml")
}

// set writes another scalar into the text of a YAML document, whose comments stay.
func set(text []byte, value string, path ...string) ([]byte, error) {
	var document yamlnodes.Node
	if err := yamlnodes.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	node := document.Content[0]
	for _, key := range path {
		i := slices.IndexFunc(node.Content, func(child *yamlnodes.Node) bool { return child.Value == key })
		if i < 0 || i+1 == len(node.Content) {
			return nil, fmt.Errorf("values.yaml has no %s", strings.Join(path, "."))
		}
		node = node.Content[i+1]
	}
	lines := strings.Split(string(text), "\n")
	line := &lines[node.Line-1]
	*line = (*line)[:node.Column-1] + fmt.Sprintf("%q", value)
	return []byte(strings.Join(lines, "\n")), nil
}

// names of the images with their tags, and with their digests where they are known.
func (i *images) names(chart *chartv2.Chart) []string {
	repository := i.repository
	if repository == "" {
		of, _ := chart.Values["image"].(map[string]any)
		repository = fmt.Sprintf("%s/%s", of["registry"], of["repository"])
	}
	programs := slices.Sorted(maps.Keys(i.digests))
	if len(programs) == 0 {
		programs = []string{"refit-daemon", "refit-manager", "refit-sidecar"}
	}
	var all []string
	for _, program := range programs {
		name := repository + "/" + program + ":" + chart.Metadata.AppVersion
		if i.digests[program] != "" {
			name += "@" + i.digests[program]
		}
		all = append(all, name)
	}
	return all
}

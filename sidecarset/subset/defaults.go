package subset

import (
	"encoding/json"
	"maps"
	"strings"
)

// probe has the defaults of a probe.
var probe = map[string]any{
	"timeoutSeconds": json.Number("1"), "periodSeconds": json.Number("10"), "successThreshold": json.Number("1"), "failureThreshold": json.Number("3"),
}

// mode of the files of a volume.
var mode = map[string]any{"defaultMode": json.Number("420")}

// defaults of the API server for objects in containers and volumes, by the field that has them. They are added to both sides of a
// comparison, so a field that the API server does not complete there does no harm.
var defaults = map[string]map[string]any{
	"ports":         {"protocol": "TCP"},
	"livenessProbe": probe, "readinessProbe": probe, "startupProbe": probe,
	"httpGet":    {"path": "/", "scheme": "HTTP"},
	"grpc":       {"service": ""},
	"fieldRef":   {"apiVersion": "v1"},
	"fileKeyRef": {"optional": false},
	// Volumes
	"secret": mode, "configMap": mode, "downwardAPI": mode, "projected": mode,
	"serviceAccountToken": {"expirationSeconds": json.Number("3600")},
	"hostPath":            {"type": ""},
	"iscsi":               {"iscsiInterface": "default"},
	"rbd":                 {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
	"azureDisk":           {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": false, "kind": "Shared"},
	"scaleIO":             {"storageMode": "ThinProvisioned", "fsType": "xfs"},
	"spec":                {"volumeMode": "Filesystem"}, // of an ephemeral volume's claim
}

// complete adds the defaults of the API server to a container, a volume, or what they consist of. Fields that are null are
// removed: they are the same as none.
func complete(at place, value any) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			complete(at, element)
		}
	case map[string]any:
		maps.DeleteFunc(value, func(_ string, inner any) bool { return inner == nil })
		for key, inner := range value {
			complete(at.of(key), inner)
		}
		if at == (place{}) {
			completeWhole(value)
		}
		for key, inner := range defaults[at.field] {
			if _, ok := value[key]; !ok {
				value[key] = inner
			}
		}
	}
}

// completeWhole adds the defaults of a container, which has an image as text, or of a volume.
func completeWhole(object map[string]any) {
	image, isContainer := object["image"].(string)
	switch {
	case isContainer:
		set(object, "terminationMessagePath", "/dev/termination-log")
		set(object, "terminationMessagePolicy", "File")
		set(object, "imagePullPolicy", pullPolicy(image))
		completeResources(object)
	case len(object) == 1: // a name
		object["emptyDir"] = map[string]any{}
	}
	if source, ok := object["image"].(map[string]any); ok {
		reference, _ := source["reference"].(string)
		set(source, "pullPolicy", pullPolicy(reference))
	}
}

func set(object map[string]any, key, value string) {
	if _, ok := object[key]; !ok {
		object[key] = value
	}
}

// completeResources: what is limited and not requested is requested as it is limited.
func completeResources(container map[string]any) {
	resources, ok := container["resources"].(map[string]any)
	if !ok {
		resources = map[string]any{}
		container["resources"] = resources
	}
	limits, _ := resources["limits"].(map[string]any)
	if len(limits) == 0 {
		return
	}
	requests := maps.Clone(limits)
	if requested, ok := resources["requests"].(map[string]any); ok {
		maps.Copy(requests, requested)
	}
	resources["requests"] = requests
}

// pullPolicy is that of an image by its tag: one without tag and digest is the latest.
func pullPolicy(image string) string {
	name, _, digested := strings.Cut(image, "@")
	_, tag, tagged := strings.Cut(name[strings.LastIndex(name, "/")+1:], ":")
	if tag == "latest" || !tagged && !digested {
		return "Always"
	}
	return "IfNotPresent"
}

package subset

import (
	"encoding/json"
	"maps"

	defaulting "github.com/refit-project/refit/sidecarset/defaults"
)

// probe holds the defaults of a probe.
var probe = map[string]any{
	"timeoutSeconds": json.Number("1"), "periodSeconds": json.Number("10"), "successThreshold": json.Number("1"), "failureThreshold": json.Number("3"),
}

// mode is the default mode of the files of a volume.
var mode = map[string]any{"defaultMode": json.Number("420")}

// defaults holds the defaults of the API server for objects in containers and volumes, by the field that contains them.
// They are added to both sides of a comparison, so a default that the API server does not set there does no harm.
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
	"spec":                {"volumeMode": "Filesystem"}, // claim of an ephemeral volume
}

// complete adds the defaults of the API server to a container, a volume, or a part of them. It removes fields that are
// null, because they mean the same as missing fields.
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

// completeWhole adds the defaults of a container, which has a string as image, or of a volume.
func completeWhole(object map[string]any) {
	image, isContainer := object["image"].(string)
	switch {
	case isContainer:
		set(object, "terminationMessagePath", "/dev/termination-log")
		set(object, "terminationMessagePolicy", "File")
		set(object, "imagePullPolicy", string(defaulting.PullPolicy(image)))
		completeResources(object)
	case len(object) == 1: // only a name
		object["emptyDir"] = map[string]any{}
	}
	if source, ok := object["image"].(map[string]any); ok {
		reference, _ := source["reference"].(string)
		set(source, "pullPolicy", string(defaulting.PullPolicy(reference)))
	}
}

func set(object map[string]any, key, value string) {
	if _, ok := object[key]; !ok {
		object[key] = value
	}
}

// completeResources sets missing requests to the limits.
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

// Package annotation reads and writes the annotations that record what SidecarSets have injected into a pod. They have
// OpenKruise's format; older forms of it can be read too.
package annotation

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/internal/must"
	"github.com/refit-project/refit/sidecarset/revision"
)

// Entry is the record of one SidecarSet in a pod.
type Entry struct {
	UpdateTimestamp metav1.Time `json:"updateTimestamp"`
	Hash            string      `json:"hash"`
	SidecarSetName  string      `json:"sidecarSetName"`
	// SidecarList holds the sorted names of the containers and native sidecars in the SidecarSet.
	SidecarList []string `json:"sidecarList"`
	// ControllerRevision is the name of the ControllerRevision.
	ControllerRevision string `json:"controllerRevision,omitempty"`
}

// UnmarshalJSON also reads the form used by OpenKruise before 0.9: only the hash.
func (e *Entry) UnmarshalJSON(text []byte) error {
	var hash string
	if json.Unmarshal(text, &hash) == nil {
		*e = Entry{Hash: hash}
		return nil
	}
	type plain Entry
	return json.Unmarshal(text, (*plain)(e))
}

// Injected is what a pod records about a SidecarSet.
type Injected struct {
	// Entry is the entry with the full hash.
	Entry
	// WithoutImage is the hash of the containers without their images.
	WithoutImage string
}

// Of returns what a pod records about a SidecarSet, or nil if it records nothing or the record is unreadable.
func Of(pod metav1.Object, sidecarSet string) *Injected {
	full, ok := entries(pod, v1beta1.AnnotationSidecarSetHash)[sidecarSet]
	if !ok {
		return nil
	}
	return &Injected{Entry: full, WithoutImage: entries(pod, v1beta1.AnnotationSidecarSetHashWithoutImage)[sidecarSet].Hash}
}

// entries returns the entries of an annotation, without unreadable ones.
func entries(pod metav1.Object, key string) map[string]Entry {
	raw := map[string]json.RawMessage{}
	if text := pod.GetAnnotations()[key]; text == "" || foreign.JSON(text, &raw) != nil {
		return nil
	}
	read := make(map[string]Entry, len(raw))
	for name, text := range raw {
		var entry Entry
		if foreign.JSON(text, &entry) == nil {
			read[name] = entry
		}
	}
	return read
}

// Names returns the SidecarSets that were injected into the pod.
func Names(pod metav1.Object) []string {
	text := pod.GetAnnotations()[v1beta1.AnnotationSidecarSetList]
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// Sidecars returns the sorted names of the containers that the SidecarSet keeps running in a pod.
func Sidecars(spec *v1beta1.SidecarSetSpec) []string {
	names := make([]string, 0, len(spec.Containers)+len(spec.InitContainers))
	for i := range spec.Containers {
		names = append(names, spec.Containers[i].Name)
	}
	for i := range spec.InitContainers {
		if revision.Native(&spec.InitContainers[i]) {
			names = append(names, spec.InitContainers[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

// Version identifies a version of a SidecarSet for the annotations of pods.
type Version struct {
	SidecarSet string
	Revision   string // name of the ControllerRevision; empty if it is not known
	Hashes     revision.Hashes
	Sidecars   []string
}

// Write returns the annotations that record this version of the SidecarSet in a pod, together with the records of other
// SidecarSets.
func Write(pod metav1.Object, version *Version, now metav1.Time) map[string]string {
	entry := Entry{UpdateTimestamp: now.Rfc3339Copy(), SidecarSetName: version.SidecarSet, SidecarList: version.Sidecars}
	full, bare := entry, entry
	full.Hash, full.ControllerRevision, bare.Hash = version.Hashes.Full, version.Revision, version.Hashes.WithoutImage
	names := Names(pod)
	if !slices.Contains(names, version.SidecarSet) {
		names = append(names, version.SidecarSet)
		slices.Sort(names)
	}
	return map[string]string{
		v1beta1.AnnotationSidecarSetHash:             with(pod, v1beta1.AnnotationSidecarSetHash, version.SidecarSet, full),
		v1beta1.AnnotationSidecarSetHashWithoutImage: with(pod, v1beta1.AnnotationSidecarSetHashWithoutImage, version.SidecarSet, bare),
		v1beta1.AnnotationSidecarSetList:             strings.Join(names, ","),
	}
}

// with returns the JSON object of an annotation with an entry added. It replaces an unreadable annotation.
func with(pod metav1.Object, key, name string, value any) string {
	all := map[string]any{}
	raw := map[string]json.RawMessage{}
	if foreign.JSON(pod.GetAnnotations()[key], &raw) == nil {
		for other, text := range raw {
			all[other] = text
		}
	}
	all[name] = value
	return string(must.JSON(all))
}

// Working returns the working container of each sidecar with hot upgrades.
func Working(pod metav1.Object) map[string]string {
	var working map[string]string
	if foreign.JSON(pod.GetAnnotations()[v1beta1.AnnotationHotUpgradeWorking], &working) != nil {
		return nil
	}
	return working
}

// WriteWorking returns the value of the annotation after changes.
func WriteWorking(pod metav1.Object, changes map[string]string) string {
	working := maps.Clone(Working(pod))
	if working == nil {
		working = map[string]string{}
	}
	maps.Copy(working, changes)
	return string(must.JSON(working))
}

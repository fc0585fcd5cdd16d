// Package annotation reads and writes the annotations in which a pod carries what SidecarSets have injected into it:
// OpenKruise's wire format, also in its older forms.
package annotation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/foreign"
	"github.com/refit-project/refit/sidecarset/revision"
)

// Entry is what a pod carries of one SidecarSet.
type Entry struct {
	UpdateTimestamp metav1.Time `json:"updateTimestamp"`
	Hash            string      `json:"hash"`
	SidecarSetName  string      `json:"sidecarSetName"`
	// SidecarList are the names of the containers and native sidecars in the SidecarSet, sorted.
	SidecarList []string `json:"sidecarList"`
	// ControllerRevision is the name of the revision.
	ControllerRevision string `json:"controllerRevision,omitempty"`
}

// UnmarshalJSON also reads the form of OpenKruise before 0.9: the hash alone.
func (e *Entry) UnmarshalJSON(text []byte) error {
	var hash string
	if json.Unmarshal(text, &hash) == nil {
		*e = Entry{Hash: hash}
		return nil
	}
	type plain Entry
	return json.Unmarshal(text, (*plain)(e))
}

// Injected is what a pod carries of a SidecarSet.
type Injected struct {
	// Entry is that with the full hash.
	Entry
	// WithoutImage is the hash of the containers without their images.
	WithoutImage string
}

// Of reads what a pod carries of a SidecarSet. It is nil if the pod carries nothing of it, or nothing that can be read.
func Of(pod metav1.Object, sidecarSet string) *Injected {
	full, ok := entries(pod, v1beta1.AnnotationSidecarSetHash)[sidecarSet]
	if !ok {
		return nil
	}
	return &Injected{Entry: full, WithoutImage: entries(pod, v1beta1.AnnotationSidecarSetHashWithoutImage)[sidecarSet].Hash}
}

// entries of an annotation; those that cannot be read are left out.
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

// Names are the SidecarSets that were injected into the pod.
func Names(pod metav1.Object) []string {
	text := pod.GetAnnotations()[v1beta1.AnnotationSidecarSetList]
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// Sidecars are the names of the containers that the SidecarSet keeps running in a pod, sorted.
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

// Write returns the annotations of a pod that say that it has this version of the SidecarSet, beside what they say of
// others.
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

// with is the JSON object of an annotation with one more entry. One that cannot be read is replaced.
func with(pod metav1.Object, key, name string, value any) string {
	all := map[string]any{}
	raw := map[string]json.RawMessage{}
	if foreign.JSON(pod.GetAnnotations()[key], &raw) == nil {
		for other, text := range raw {
			all[other] = text
		}
	}
	all[name] = value
	text, err := json.Marshal(all)
	if err != nil {
		panic(fmt.Sprintf("encode annotation %s: %v", key, err)) // each entry has been decoded, or is of a type that can be encoded
	}
	return string(text)
}

// Working is the container that works of each sidecar that is upgraded hot.
func Working(pod metav1.Object) map[string]string {
	var working map[string]string
	if foreign.JSON(pod.GetAnnotations()[v1beta1.AnnotationHotUpgradeWorking], &working) != nil {
		return nil
	}
	return working
}

// WriteWorking returns the annotation's value after the changes.
func WriteWorking(pod metav1.Object, changes map[string]string) string {
	working := maps.Clone(Working(pod))
	if working == nil {
		working = map[string]string{}
	}
	maps.Copy(working, changes)
	text, err := json.Marshal(working)
	if err != nil {
		panic(err) // a map of strings can always be encoded
	}
	return string(text)
}

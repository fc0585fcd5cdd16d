package revision

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/sidecarset/defaults"
)

// LabelHash is the label of a ControllerRevision with the hash that is part of its name.
const LabelHash = "controller.kubernetes.io/hash"

// maxName leaves space for '-' and the hash in the name of a ControllerRevision.
const maxName = 223

// ErrMalformed is wrapped by errors about the data of a ControllerRevision.
var ErrMalformed = errors.New("malformed ControllerRevision")

// data is the part of a spec that a ControllerRevision stores. Like in OpenKruise, unset fields are written as null.
type data struct {
	Spec dataSpec `json:"spec"`
}

type dataSpec struct {
	Patch            string                               `json:"$patch"` // "replace": fields that are missing here are not restored
	Volumes          []corev1.Volume                      `json:"volumes"`
	Containers       []v1beta1.SidecarContainer           `json:"containers"`
	InitContainers   []v1beta1.SidecarContainer           `json:"initContainers"`
	ImagePullSecrets []corev1.LocalObjectReference        `json:"imagePullSecrets"`
	PatchPodMetadata []v1beta1.SidecarSetPatchPodMetadata `json:"patchPodMetadata"`
	// PodVolumes and PatchContainers only exist in Refit. They are omitted if empty.
	PodVolumes      []string                           `json:"podVolumes,omitempty"`
	PatchContainers []v1beta1.SidecarSetPatchContainer `json:"patchContainers,omitempty"`
}

// encode returns the data of a revision. Keys are sorted, like in OpenKruise.
func encode(spec *v1beta1.SidecarSetSpec) ([]byte, error) {
	spec = defaults.Normal(spec)
	text, err := json.Marshal(data{Spec: dataSpec{
		Patch: "replace", Volumes: spec.Volumes, Containers: spec.Containers, InitContainers: spec.InitContainers,
		ImagePullSecrets: spec.ImagePullSecrets, PatchPodMetadata: spec.PatchPodMetadata, PodVolumes: spec.PodVolumes,
		PatchContainers: spec.PatchContainers,
	}})
	if err != nil {
		return nil, err
	}
	var generic any
	if err := json.Unmarshal(text, &generic); err != nil {
		return nil, err
	}
	return json.Marshal(generic)
}

// Restore returns the part of the spec that a ControllerRevision stores, as it was written: containers, volumes, pull
// secrets and metadata. Revisions written by an earlier version of Refit lack defaults.
func Restore(revision *appsv1.ControllerRevision) (*v1beta1.SidecarSetSpec, error) {
	var d data
	if err := foreign.Object(revision.Data.Raw, &d); err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrMalformed, revision.Name, err)
	}
	return &v1beta1.SidecarSetSpec{
		Volumes: d.Spec.Volumes, Containers: d.Spec.Containers, InitContainers: d.Spec.InitContainers,
		ImagePullSecrets: d.Spec.ImagePullSecrets, PatchPodMetadata: d.Spec.PatchPodMetadata,
		PodVolumes: d.Spec.PodVolumes, PatchContainers: d.Spec.PatchContainers,
	}, nil
}

// New returns the ControllerRevision of a SidecarSet. Its name depends on the data and the SidecarSet's collision
// count. The caller chooses its number.
func New(set *v1beta1.SidecarSet, namespace string, number int64) (*appsv1.ControllerRevision, error) {
	raw, err := encode(&set.Spec)
	if err != nil {
		return nil, fmt.Errorf("encode revision of SidecarSet %s: %w", set.Name, err)
	}
	sum := fnv.New32()
	sum.Write(raw)
	if set.Status.CollisionCount != nil {
		sum.Write([]byte(strconv.FormatInt(int64(*set.Status.CollisionCount), 10)))
	}
	suffix := rand.SafeEncodeString(strconv.FormatUint(uint64(sum.Sum32()), 10))
	hashes := HashesOf(&set.Spec)
	revision := &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: raw}, Revision: number}
	revision.Namespace, revision.Name = namespace, set.Name[:min(len(set.Name), maxName)]+"-"+suffix
	revision.OwnerReferences = ownedBy(set)
	revision.Labels = map[string]string{}
	maps.Copy(revision.Labels, set.Labels)
	revision.Labels[v1beta1.LabelSidecarSetName], revision.Labels[LabelHash] = set.Name, suffix
	if version := CustomVersion(set); version != "" {
		revision.Labels[v1beta1.LabelSidecarSetCustomVersion] = version
	}
	revision.Annotations = map[string]string{
		v1beta1.AnnotationSidecarSetHash: hashes.Full, v1beta1.AnnotationSidecarSetHashWithoutImage: hashes.WithoutImage,
	}
	return revision, nil
}

// CustomVersion returns the name that the user has given to this version, or "".
func CustomVersion(set *v1beta1.SidecarSet) string {
	return cmp.Or(set.Spec.CustomVersion, set.Labels[v1beta1.LabelSidecarSetCustomVersion])
}

// SetCustomVersion sets the name of this version where the user has set it: in the spec, or in the label of v1alpha1.
func SetCustomVersion(set *v1beta1.SidecarSet, version string) {
	_, labelled := set.Labels[v1beta1.LabelSidecarSetCustomVersion]
	if !labelled || set.Spec.CustomVersion != "" {
		set.Spec.CustomVersion = version
	}
	switch {
	case labelled && version != "":
		set.Labels[v1beta1.LabelSidecarSetCustomVersion] = version
	case labelled:
		delete(set.Labels, v1beta1.LabelSidecarSetCustomVersion)
	}
}

// equal reports whether two revisions restore the same spec, after adding defaults that an earlier version of Refit has
// not stored.
func equal(a, b *appsv1.ControllerRevision) bool {
	if bytes.Equal(a.Data.Raw, b.Data.Raw) {
		return true
	}
	left, errLeft := Restore(a)
	right, errRight := Restore(b)
	if errLeft != nil || errRight != nil {
		return false
	}
	normalLeft, errLeft := encode(left)
	normalRight, errRight := encode(right)
	return errLeft == nil && errRight == nil && bytes.Equal(normalLeft, normalRight)
}

// Change is what to write so that the newest revision matches the spec. At most one of the fields is set.
type Change struct {
	// Create is a new revision. If its name is used by a revision with other data, the caller must increase the
	// collision count.
	Create *appsv1.ControllerRevision
	// Update is an earlier revision that becomes the newest, or gets another custom version.
	Update *appsv1.ControllerRevision
}

// Plan compares the revisions of a SidecarSet with its spec. latest is the revision of the spec.
func Plan(set *v1beta1.SidecarSet, namespace string, history []*appsv1.ControllerRevision) (latest *appsv1.ControllerRevision, change Change, err error) {
	history = Sorted(history)
	next := int64(1)
	if n := len(history); n > 0 {
		next = history[n-1].Revision + 1
	}
	wanted, err := New(set, namespace, next)
	if err != nil {
		return nil, change, err
	}
	for i := len(history) - 1; i >= 0; i-- {
		if !equal(history[i], wanted) {
			continue
		}
		found := history[i].DeepCopy()
		if i < len(history)-1 {
			found.Revision = next // the spec has been rolled back
		}
		if version := CustomVersion(set); version != "" && found.Labels[v1beta1.LabelSidecarSetCustomVersion] != version {
			found.Labels = maps.Clone(found.Labels)
			if found.Labels == nil {
				found.Labels = map[string]string{}
			}
			found.Labels[v1beta1.LabelSidecarSetCustomVersion] = version
		}
		if found.Revision != history[i].Revision || !maps.Equal(found.Labels, history[i].Labels) {
			change.Update = found
		}
		return found, change, nil
	}
	change.Create = wanted
	return wanted, change, nil
}

// Sorted returns the revisions in order, the newest last.
func Sorted(history []*appsv1.ControllerRevision) []*appsv1.ControllerRevision {
	sorted := slices.Clone(history)
	slices.SortFunc(sorted, func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return sorted
}

func ownedBy(set *v1beta1.SidecarSet) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(set, v1beta1.GroupVersion().WithKind(v1beta1.KindSidecarSet))}
}

// defaultLimit is the default of spec.revisionHistoryLimit.
const defaultLimit = 10

// Expired returns the revisions beyond the limit of the SidecarSet, the oldest first. It leaves out the newest
// revision, and revisions that pods were injected with or to which the injection is pinned.
func Expired(set *v1beta1.SidecarSet, history []*appsv1.ControllerRevision, used func(name string) bool) []*appsv1.ControllerRevision {
	history = Sorted(history)
	limit := defaultLimit
	if set.Spec.RevisionHistoryLimit != nil {
		limit = max(int(*set.Spec.RevisionHistoryLimit), 1)
	}
	surplus := len(history) - limit
	if surplus <= 0 {
		return nil
	}
	pinned := Pinned(set, history)
	var expired []*appsv1.ControllerRevision
	for _, revision := range history[:len(history)-1] {
		if len(expired) == surplus {
			break
		}
		if !used(revision.Name) && (pinned == nil || pinned.Name != revision.Name) {
			expired = append(expired, revision)
		}
	}
	return expired
}

// Pinned returns the revision that new pods get according to spec.injectionStrategy.revision: the one with this name,
// or the newest one with this custom version. It returns nil if there is none.
func Pinned(set *v1beta1.SidecarSet, history []*appsv1.ControllerRevision) *appsv1.ControllerRevision {
	pin := set.Spec.InjectionStrategy.Revision
	if pin == nil {
		return nil
	}
	var found *appsv1.ControllerRevision
	for _, revision := range history {
		switch {
		case pin.RevisionName != nil && *pin.RevisionName != "":
			if revision.Name == *pin.RevisionName {
				return revision
			}
		case pin.CustomVersion != nil && *pin.CustomVersion != "" && revision.Labels[v1beta1.LabelSidecarSetCustomVersion] == *pin.CustomVersion:
			if found == nil || revision.Revision > found.Revision {
				found = revision
			}
		}
	}
	return found
}

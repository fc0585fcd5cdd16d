package entry

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/internal/must"
)

const (
	// maxBytes limits the entries of a NodeImage with their status, in bytes of JSON without messages. etcd accepts 1.5
	// MiB per object (--max-request-bytes); image.MaxMessages and the other fields of the object have to fit into the
	// rest.
	maxBytes = 1 << 20
	// The size of one pull apart from names, of one job, and of one secret: keys, numbers and times of the spec and the
	// status, and the managed fields recorded by the API server.
	pullBytes   = 1600
	jobBytes    = 700
	secretBytes = 300
	// sandboxTimes is how often a sandbox configuration is stored: for the namespace, for the repository, and once more
	// its keys.
	sandboxTimes = 3
)

// limit is a limit of a NodeImage, and how much of it the pulls use.
type limit struct {
	what      string
	is, most  int
	by        map[string]int // by namespace
	removable func(repository, tag string) bool
	jobs      bool // counts single jobs, not pulls
}

func (l limit) String() string { return fmt.Sprintf("%d %s", l.most, l.what) }

// largest returns the namespace that uses most, among those with jobs that can wait; of equals the first by name.
func (l limit) largest(removed map[string]bool) string {
	found := ""
	for _, namespace := range slices.Sorted(maps.Keys(l.by)) {
		if namespace != "" && !removed[namespace] && (found == "" || l.by[namespace] > l.by[found]) {
			found = namespace
		}
	}
	return found
}

// exceeded returns the first limit that a spec exceeds, or nil if it is within all limits affected by an addition to
// the tag.
func exceeded(spec *v1beta1.NodeImageSpec, reference image.Reference) *limit {
	all := func(string, string) bool { return true }
	ofRepository := func(repository, _ string) bool { return repository == reference.Repository }
	images := &limit{what: "images", is: len(spec.Images), most: v1beta1.MaxNodeImages, by: map[string]int{}, removable: all}
	size := &limit{what: "bytes of entries", most: maxBytes, by: map[string]int{}, removable: all}
	here := spec.Images[reference.Repository]
	tags := &limit{what: "tags of " + reference.Repository, is: len(here.Tags), most: v1beta1.MaxImageTags, by: map[string]int{}, removable: ofRepository}
	secrets := &limit{what: "pull secrets for " + reference.Repository, is: len(here.PullSecrets), most: v1beta1.MaxImageSecrets, by: map[string]int{}, removable: ofRepository}
	jobs := &limit{what: "jobs for " + reference.String(), most: v1beta1.MaxTagOwners, by: map[string]int{}, jobs: true, removable: func(repository, tag string) bool {
		return repository == reference.Repository && tag == reference.Tag
	}}
	for name, repository := range spec.Images {
		in := map[string]bool{}
		for i := range repository.Tags {
			tag := &repository.Tags[i]
			for _, namespace := range namespacesOf(tag) {
				bytes := sizeOf(name, tag, namespace)
				size.is += bytes
				size.by[namespace] += bytes
				in[namespace] = true
				if name == reference.Repository {
					tags.by[namespace]++
				}
			}
			if name == reference.Repository && tag.Tag == reference.Tag {
				for _, owner := range tag.OwnerReferences {
					jobs.is++
					jobs.by[owner.Namespace]++
				}
			}
		}
		for namespace := range in {
			images.by[namespace]++
		}
		if name == reference.Repository {
			for namespace, of := range secretsOf(&repository) {
				secrets.by[namespace] = len(of)
			}
		}
	}
	for _, l := range []*limit{images, tags, jobs, secrets, size} {
		if l.is > l.most {
			return l
		}
	}
	return nil
}

// Crowded reports whether a spec uses more than half of one of its limits. If it does not, no job waits for space there, apart from a
// job that is too large for what is left; such a job checks again after a while.
func Crowded(spec *v1beta1.NodeImageSpec) bool {
	bytes := 0
	for name, repository := range spec.Images {
		if len(repository.Tags) > v1beta1.MaxImageTags/2 || len(repository.PullSecrets) > v1beta1.MaxImageSecrets/2 {
			return true
		}
		for i := range repository.Tags {
			tag := &repository.Tags[i]
			if len(tag.OwnerReferences) > v1beta1.MaxTagOwners/2 {
				return true
			}
			for _, namespace := range namespacesOf(tag) {
				bytes += sizeOf(name, tag, namespace)
			}
		}
	}
	return len(spec.Images) > v1beta1.MaxNodeImages/2 || bytes > maxBytes/2
}

func namespacesOf(tag *v1beta1.ImageTagSpec) []string {
	names := map[string]bool{}
	for _, owner := range tag.OwnerReferences {
		names[owner.Namespace] = true
	}
	if len(names) == 0 {
		return []string{""}
	}
	return slices.Collect(maps.Keys(names))
}

func secretsOf(repository *v1beta1.ImageSpec) map[string]map[string]bool {
	secrets := map[string]map[string]bool{}
	for i := range repository.Tags {
		for _, is := range repository.Tags[i].Namespaces {
			if secrets[is.Namespace] == nil {
				secrets[is.Namespace] = map[string]bool{}
			}
			for _, s := range is.PullSecrets {
				secrets[is.Namespace][s.Name] = true
			}
		}
	}
	return secrets
}

// sizeOf returns an upper limit of the size of the pull of a tag for a namespace, with its status but without messages.
// Parts that it shares with other pulls count for each of them.
func sizeOf(repository string, tag *v1beta1.ImageTagSpec, namespace string) int {
	size := pullBytes + 3*len(repository) + 4*len(tag.Tag)
	for _, owner := range tag.OwnerReferences {
		if owner.Namespace == namespace {
			size += jobBytes + len(owner.Name) + len(owner.Namespace)
		}
	}
	if is := image.NamespaceSpec(tag, namespace); is != nil {
		for _, secret := range is.PullSecrets {
			size += secretBytes + 2*len(secret.Name)
		}
		if is.SandboxConfig != nil {
			size += sandboxTimes * len(must.JSON(is.SandboxConfig))
		}
	}
	return size
}

// makeRoom removes pulls if an addition for a namespace makes a spec exceed a limit. It removes the newest pull of the
// namespace that uses most, one at a time, as long as that namespace uses more than the requesting one. It returns
// which limit leaves no space, or "" if there is space.
func makeRoom(spec *v1beta1.NodeImageSpec, reference image.Reference, namespace string) (full string) {
	spent := map[string]bool{} // namespaces from which nothing can be removed
	for {
		l := exceeded(spec, reference)
		if l == nil {
			return ""
		}
		largest := l.largest(spent)
		if largest == "" || l.by[largest] <= l.by[namespace] {
			return l.String()
		}
		if !removeNewest(spec, largest, l) {
			spent[largest] = true
		}
	}
}

// removeNewest removes the newest pull of a namespace, or its newest job. It prefers pulls that no other namespace
// shares, because removing a shared one frees little space.
func removeNewest(spec *v1beta1.NodeImageSpec, namespace string, of *limit) bool {
	type candidate struct {
		repository string
		tag        *v1beta1.ImageTagSpec
	}
	var newest *candidate
	newer := func(a, b *candidate) bool {
		return cmp.Or(-cmp.Compare(len(namespacesOf(a.tag)), len(namespacesOf(b.tag))), created(a.tag, namespace).Compare(created(b.tag, namespace)),
			cmp.Compare(a.repository, b.repository), cmp.Compare(a.tag.Tag, b.tag.Tag)) > 0
	}
	for name, repository := range spec.Images {
		for i := range repository.Tags {
			c := &candidate{name, &repository.Tags[i]}
			if of.removable(name, c.tag.Tag) && slices.Contains(namespacesOf(c.tag), namespace) && (newest == nil || newer(c, newest)) {
				newest = c
			}
		}
	}
	if newest == nil {
		return false
	}
	removeFrom(spec, newest.repository, newest.tag.Tag, func(tag *v1beta1.ImageTagSpec) { remove(tag, namespace, of.jobs) })
	return true
}

// remove removes the pull of a tag for a namespace, or only its last job.
func remove(tag *v1beta1.ImageTagSpec, namespace string, last bool) {
	var owners []corev1.ObjectReference
	for _, o := range tag.OwnerReferences {
		if o.Namespace == namespace {
			owners = append(owners, o)
		}
	}
	if last && len(owners) > 1 {
		gone := owners[len(owners)-1]
		tag.OwnerReferences = slices.DeleteFunc(tag.OwnerReferences, func(o corev1.ObjectReference) bool { return o == gone })
		if is := image.NamespaceSpec(tag, namespace); is != nil {
			is.Jobs = slices.DeleteFunc(is.Jobs, func(v v1beta1.ImageJobVersion) bool { return v.UID == gone.UID })
		}
		return
	}
	tag.OwnerReferences = slices.DeleteFunc(tag.OwnerReferences, func(o corev1.ObjectReference) bool { return o.Namespace == namespace })
	tag.Namespaces = slices.DeleteFunc(tag.Namespaces, func(is v1beta1.ImageNamespaceSpec) bool { return is.Namespace == namespace })
}

// created returns when the pull of a tag for a namespace was requested.
func created(tag *v1beta1.ImageTagSpec, namespace string) time.Time {
	at := tag.CreatedAt
	if is := image.NamespaceSpec(tag, namespace); is != nil {
		at = is.CreatedAt
	}
	if at == nil {
		return time.Time{}
	}
	return at.Time
}

package entry

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
)

const (
	// maxEndedOf limits the recorded outcomes of one namespace, and maxEnded all of a NodeImage, in bytes. The API server
	// accepts 256 KiB of annotations.
	maxEndedOf = 32 << 10
	maxEnded   = 192 << 10
	// maxEndedMessage limits the message of a recorded outcome.
	maxEndedMessage = 64
	// manyStale is the number of outcomes that no job needs from which on they are removed at once. A smaller number waits
	// for another change of the NodeImage, at most for keepFinished after the pull, because every write delays all pulls.
	manyStale = 16
)

// Ended is the outcome of a pull for a job whose entry was removed from a NodeImage.
type Ended struct {
	Phase   v1beta1.ImagePullPhase
	Message string
	// Until is when the job pulls the image again, or zero if it does not.
	Until time.Time
}

// record is one line of the annotation.
type record struct {
	namespace, name string
	uid             types.UID
	phase           v1beta1.ImagePullPhase
	at              time.Time
	message         string
}

func (r *record) String() string {
	return fmt.Sprintf("%s/%s %s %s %d %s\n", r.namespace, r.name, r.uid, r.phase, r.at.Unix(), r.message)
}

func (r *record) owner() corev1.ObjectReference {
	return corev1.ObjectReference{Namespace: r.namespace, Name: r.name, UID: r.uid}
}

// parse reads a line. It returns false for a line that has not been written by this package.
func parse(line string) (r record, ok bool) {
	parts := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 5)
	if len(parts) < 5 {
		return record{}, false
	}
	at, err := strconv.ParseInt(parts[3], 10, 64)
	if err != nil {
		return record{}, false
	}
	r.namespace, r.name, ok = strings.Cut(parts[0], "/")
	r.uid, r.phase, r.at, r.message = types.UID(parts[1]), v1beta1.ImagePullPhase(parts[2]), time.Unix(at, 0).UTC(), parts[4]
	return r, ok
}

func records(node *v1beta1.NodeImage) []record {
	var all []record
	for line := range strings.Lines(node.Annotations[v1beta1.AnnotationEndedPulls]) {
		if r, ok := parse(line); ok {
			all = append(all, r)
		}
	}
	return all
}

func setRecords(node *v1beta1.NodeImage, all []record) {
	var text strings.Builder
	for i := range all {
		text.WriteString(all[i].String())
	}
	if text.Len() == 0 {
		delete(node.Annotations, v1beta1.AnnotationEndedPulls)
		return
	}
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	node.Annotations[v1beta1.AnnotationEndedPulls] = text.String()
}

// find returns the recorded outcome for a job. It does not parse the other lines, because it is called for each job.
func find(node *v1beta1.NodeImage, namespace, name string, uid types.UID) (record, bool) {
	text := node.Annotations[v1beta1.AnnotationEndedPulls]
	start := namespace + "/" + name + " " + string(uid) + " "
	if !strings.HasPrefix(text, start) {
		at := strings.Index(text, "\n"+start)
		if at < 0 {
			return record{}, false
		}
		text = text[at+1:]
	}
	line, _, _ := strings.Cut(text, "\n")
	return parse(line)
}

// EndedFor returns the recorded outcome of a job's pull, or nil if there is none that counts.
func EndedFor(node *v1beta1.NodeImage, job *v1beta1.ImagePullJob, now time.Time) *Ended {
	r, ok := find(node, job.Namespace, job.Name, job.UID)
	if !ok {
		return nil
	}
	e := &Ended{Phase: r.phase, Message: r.message}
	if job.Spec.CompletionPolicy.Type == v1beta1.CompletionNever {
		e.Until = r.at.Add(neverInterval)
		if !now.Before(e.Until) {
			return nil
		}
	}
	return e
}

// Owners returns the jobs that a NodeImage names, in its entries and in the recorded outcomes.
func Owners(node *v1beta1.NodeImage) []corev1.ObjectReference {
	var owners []corev1.ObjectReference
	for name := range node.Spec.Images {
		tags := node.Spec.Images[name].Tags
		for i := range tags {
			owners = append(owners, tags[i].OwnerReferences...)
		}
	}
	all := records(node)
	for i := range all {
		owners = append(owners, all[i].owner())
	}
	return owners
}

// Recorded reports whether an outcome is recorded for a job.
func Recorded(node *v1beta1.NodeImage, namespace, name string, uid types.UID) bool {
	_, ok := find(node, namespace, name, uid)
	return ok
}

// forget removes the recorded outcome of a job, which pulls the image again.
func forget(node *v1beta1.NodeImage, job *v1beta1.ImagePullJob) {
	if Recorded(node, job.Namespace, job.Name, job.UID) {
		setRecords(node, slices.DeleteFunc(records(node), func(r record) bool { return r.owner().UID == job.UID }))
	}
}

// recorder adds outcomes within the limits.
type recorder struct {
	all      []record
	size, of int // bytes of all namespaces, and of one
}

func newRecorder(node *v1beta1.NodeImage, namespace string) *recorder {
	r := &recorder{all: records(node)}
	for i := range r.all {
		r.count(&r.all[i], namespace)
	}
	return r
}

func (r *recorder) count(of *record, namespace string) {
	size := len(of.String())
	r.size += size
	if of.namespace == namespace {
		r.of += size
	}
}

// add adds the outcomes of a pull for all its jobs, or none and returns false if there is no space for all.
func (r *recorder) add(c *finished) bool {
	before := *r
	for i := range c.owners {
		o := &c.owners[i]
		outcome := OutcomeFor(o.UID, c.is, c.said)
		if outcome == nil {
			*r = before
			return false
		}
		message := strings.NewReplacer("\n", " ", "\r", " ").Replace(outcome.Message)
		one := record{o.Namespace, o.Name, o.UID, outcome.Phase, c.at, foreign.Shorten(message, maxEndedMessage)}
		r.all = append(slices.Clip(r.all), one)
		r.count(&one, o.Namespace)
	}
	if r.of > maxEndedOf || r.size > maxEnded {
		*r = before
		return false
	}
	return true
}

// recordFull reports whether no further outcomes of a namespace can be recorded.
func recordFull(node *v1beta1.NodeImage, namespace string) bool {
	const one = 512 // bytes, at most
	r := newRecorder(node, namespace)
	return r.of+one > maxEndedOf || r.size+one > maxEnded
}

// OutcomeFor returns the outcome of a pull for a job, or nil if there is none yet: of the version that the job has requested,
// or of the first one after it that has ended.
func OutcomeFor(job types.UID, is *v1beta1.ImageNamespaceSpec, said *v1beta1.ImageNamespaceStatus) *v1beta1.ImageJobStatus {
	if said == nil {
		return nil
	}
	asked := is.Version
	for _, v := range is.Jobs {
		if v.UID == job {
			asked = v.Version
		}
	}
	for i := range said.Jobs {
		if o := &said.Jobs[i]; o.UID == job && o.Version >= asked {
			return o
		}
	}
	if said.Version >= asked && (said.Phase == v1beta1.ImagePhaseSucceeded || said.Phase == v1beta1.ImagePhaseFailed) {
		return &v1beta1.ImageJobStatus{UID: job, Version: said.Version, Phase: said.Phase, Message: said.Message}
	}
	return nil
}

// pruneRecords removes outcomes that no job needs: of jobs that are gone or have ended, or that pull the image again.
// changed says that the NodeImage is written anyway.
func (p *pruning) pruneRecords(node *v1beta1.NodeImage, changed bool) bool {
	all := records(node)
	before := len(all)
	var stale []time.Time
	needed := slices.DeleteFunc(slices.Clone(all), func(r record) bool {
		job := p.job(r.owner())
		gone := job == nil || job.UID != r.uid || job.Status.CompletionTime != nil || EndedFor(node, job, p.now) == nil
		if gone {
			stale = append(stale, r.at)
		}
		return gone
	})
	if before == len(needed) {
		return false
	}
	if due := slices.MinFunc(stale, time.Time.Compare).Add(keepFinished); !changed && len(stale) < manyStale && p.now.Before(due) {
		p.again = p.again.Or(due)
		return false
	}
	setRecords(node, needed)
	return true
}

// oldest orders finished pulls in the order of their removal: pulls with a secret last, because other namespaces have to
// show that they may pull the image only while a NodeImage says that it was pulled with a secret.
func oldest(a, b *finished) int {
	private := func(c *finished) int {
		if c.said.WithSecret {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(private(a), private(b)), a.at.Compare(b.at), cmp.Compare(a.repository, b.repository), cmp.Compare(a.tag, b.tag))
}

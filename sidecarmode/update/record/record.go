package update

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/hotupdate"
)

const (
	// maxRemembered bounds the history of one workload: all workloads of a namespace share an object of 1 MiB.
	maxRemembered = 5
	// maxRecord bounds one workload's part, in bytes.
	maxRecord = 16 << 10
)

// record is what the pods of one workload remember together: the revision accepted last, and some before it.
type record struct {
	// UID of the workload; another one of its name has other files. Empty where it cannot be known.
	UID       string       `json:"uid,omitempty"`
	Current   string       `json:"current"` // digest of the revision accepted last
	Revisions []remembered `json:"revisions"`
}

// remembered is how to get a revision again.
type remembered struct {
	Version  string    `json:"version"`
	Digest   string    `json:"digest"`
	Accepted time.Time `json:"accepted"`
	Sources  []origin  `json:"sources"`
	// Partial says that some content came with the request, so that it cannot be had again.
	Partial bool `json:"partial,omitempty"`
}

type origin struct {
	URL    string           `json:"url"`
	Name   string           `json:"name"`
	SHA256 string           `json:"sha256"`
	Format hotupdate.Format `json:"format,omitempty"`
	// Signature is kept for the restore: whoever may write the record may not sign.
	Signature []byte `json:"signature,omitempty"`
}

// parseRecord reads what formatRecord wrote.
func parseRecord(text string) (record, error) {
	var r record
	if len(text) > maxRecord {
		return r, fmt.Errorf("record of %d bytes: more than %d", len(text), maxRecord)
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return record{}, fmt.Errorf("decode record: %w", err)
	}
	return r, nil
}

// errLong: a revision has so many sources that they cannot be remembered.
var errLong = errors.New("too many sources to be remembered")

// formatRecord drops old revisions until the rest fits.
func formatRecord(r record) (string, error) {
	for {
		b, err := json.Marshal(r)
		if err != nil {
			return "", err
		}
		if len(b) <= maxRecord {
			return string(b), nil
		}
		if len(r.Revisions) <= 1 {
			return "", errLong
		}
		r.Revisions = r.Revisions[:len(r.Revisions)-1]
	}
}

// current is the revision accepted last.
func (r record) current() (remembered, bool) { return r.find(r.Current) }

func (r record) find(digest string) (remembered, bool) {
	i := slices.IndexFunc(r.Revisions, func(m remembered) bool { return m.Digest == digest && digest != "" })
	if i < 0 {
		return remembered{}, false
	}
	return r.Revisions[i], true
}

// accept makes a revision the current one, the newest first.
func (r record) accept(m remembered) record {
	rest := slices.DeleteFunc(slices.Clone(r.Revisions), func(o remembered) bool { return o.Digest == m.Digest })
	r.Revisions = append([]remembered{m}, rest...)
	if len(r.Revisions) > maxRemembered {
		r.Revisions = r.Revisions[:maxRemembered]
	}
	r.Current = m.Digest
	return r
}

// remember describes a revision by the request that led to it and, where the request kept other files, by those
// that led to the one before. Digests are those of what was accepted: nothing else will be restored.
func remember(request hotupdate.Request, accepted hotupdate.Revision, before remembered, now time.Time) remembered {
	m := remembered{Version: accepted.Version, Digest: accepted.Digest, Accepted: now.UTC().Truncate(time.Second)}
	for i, s := range request.Sources {
		if s.URL == "" {
			m.Partial = true
			continue
		}
		o := origin{URL: s.URL, Name: s.Name, SHA256: s.SHA256, Format: s.Format, Signature: s.Signature}
		if i < len(accepted.Sources) {
			o.Name, o.SHA256 = accepted.Sources[i].Name, accepted.Sources[i].SHA256
		}
		m.Sources = append(m.Sources, o)
	}
	if !request.Keep {
		return m
	}
	m.Partial = m.Partial || before.Partial
	for _, o := range slices.Backward(before.Sources) {
		same := func(other origin) bool { return other.Name == o.Name && other.Format == o.Format }
		if !slices.ContainsFunc(m.Sources, same) {
			m.Sources = append([]origin{o}, m.Sources...)
		}
	}
	return m
}

// request asks for the revision again.
func (m remembered) request() hotupdate.Request {
	request := hotupdate.Request{Version: m.Version}
	for _, o := range m.Sources {
		request.Sources = append(request.Sources, hotupdate.Source{URL: o.URL, Name: o.Name, SHA256: o.SHA256, Format: o.Format, Signature: o.Signature})
	}
	return request
}

// workload is what a pod's fellows are known by.
type workload struct{ kind, name, uid string }

// workloadOf is the pod's controller; of a ReplicaSet its Deployment, which outlives it. A pod of its own is
// known by its UID: there are no fellows.
func workloadOf(pod *corev1.Pod) workload {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return workload{"Pod", pod.Name, string(pod.UID)}
	}
	hash := pod.Labels["pod-template-hash"]
	if name, ok := strings.CutSuffix(owner.Name, "-"+hash); ok && hash != "" && owner.Kind == "ReplicaSet" {
		return workload{"Deployment", name, ""}
	}
	return workload{owner.Kind, owner.Name, string(owner.UID)}
}

// key in the ConfigMap. A kind has no dot, so it is unambiguous.
func (w workload) key() string { return w.kind + "." + w.name }

// referenceKey is where the reference implementation keeps a pod's versions.
func referenceKey(namespace, name string) string { return namespace + "-" + name }

var referenceVersion = regexp.MustCompile(`^v\d+(?:\.\d+)*$`)

// parseReference reads the reference implementation's record of one pod, "hot_update: {v1: URL}", and picks the
// highest version, since the order of acceptance is not in it. Its sentinel is no version.
func parseReference(text string) (remembered, bool) {
	if len(text) > 1<<20 {
		return remembered{}, false
	}
	var plugins map[string]map[string]string
	if err := yaml.Unmarshal([]byte(text), &plugins); err != nil {
		return remembered{}, false
	}
	best := ""
	for version := range plugins["hot_update"] {
		if referenceVersion.MatchString(version) && (best == "" || compareVersions(version, best) > 0) {
			best = version
		}
	}
	if best == "" {
		return remembered{}, false
	}
	return remembered{Version: best, Sources: []origin{{URL: plugins["hot_update"][best]}}}, true
}

// compareVersions compares by numbers, of however many parts; equal ones by text, so that the choice is always the
// same.
func compareVersions(a, b string) int {
	as, bs := strings.Split(strings.TrimPrefix(a, "v"), "."), strings.Split(strings.TrimPrefix(b, "v"), ".")
	for i := range max(len(as), len(bs)) {
		if c := compareNumbers(part(as, i), part(bs, i)); c != 0 {
			return c
		}
	}
	return strings.Compare(a, b)
}

func part(parts []string, i int) string {
	if i < len(parts) {
		return strings.TrimLeft(parts[i], "0")
	}
	return ""
}

func compareNumbers(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// summary is the outcome as JSON, for the annotation.
type summary struct {
	Version    string          `json:"version"`
	Phase      hotupdate.Phase `json:"phase"`
	Digest     string          `json:"digest,omitempty"`
	Error      string          `json:"error,omitempty"`
	RolledBack bool            `json:"rolledBack,omitempty"`
	Time       string          `json:"time"`
}

func parseBool(s string) bool {
	b, err := strconv.ParseBool(s)
	return err == nil && b
}

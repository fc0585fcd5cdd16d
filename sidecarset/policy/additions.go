package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/inject"
	"github.com/refit-project/refit/sidecarset/revision"
)

// added is what a pod gets, as the webhook would write it.
type added struct {
	set                   string
	initBefore, initAfter []json.RawMessage
	before, after         []json.RawMessage
	volumes, secrets      []json.RawMessage
	// entries are the entries of the SidecarSet in annotations whose values are JSON objects.
	entries map[string]json.RawMessage
}

// own is the name of the containers in the test pod into which the SidecarSet is injected to find out what it adds.
const own = "refit-policy-own"

// additions runs the webhook's injection on a pod with one container of each kind, and returns what it adds.
func additions(set *v1beta1.SidecarSet, namespace string, now time.Time) (*added, error) {
	expected, err := revision.New(set, namespace, 0)
	if err != nil {
		return nil, err
	}
	compiled, err := inject.Compile(set, expected.Name)
	if err != nil {
		return nil, err
	}
	pod := []byte(`{"metadata":{},"spec":{"initContainers":[{"name":"` + own + `-init"}],"containers":[{"name":"` + own + `"}]}}`)
	result, err := inject.Apply(pod, inject.Plan{Sets: []*inject.Set{compiled}}, now)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(result.Patch)
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		return nil, err
	}
	if pod, err = patch.Apply(pod); err != nil {
		return nil, err
	}
	var injected struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec struct {
			InitContainers   []json.RawMessage `json:"initContainers"`
			Containers       []json.RawMessage `json:"containers"`
			Volumes          []json.RawMessage `json:"volumes"`
			ImagePullSecrets []json.RawMessage `json:"imagePullSecrets"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(pod, &injected); err != nil {
		return nil, err
	}
	a := &added{set: set.Name, volumes: injected.Spec.Volumes, secrets: injected.Spec.ImagePullSecrets, entries: map[string]json.RawMessage{}}
	a.initBefore, a.initAfter = around(injected.Spec.InitContainers)
	a.before, a.after = around(injected.Spec.Containers)
	for _, key := range []string{v1beta1.AnnotationSidecarSetHash, v1beta1.AnnotationSidecarSetHashWithoutImage} {
		var entries map[string]json.RawMessage
		if err := json.Unmarshal([]byte(injected.Metadata.Annotations[key]), &entries); err != nil {
			return nil, fmt.Errorf("read annotation %s: %w", key, err)
		}
		a.entries[key] = entries[set.Name]
	}
	return a, nil
}

// around returns the containers before and after the pod's own. The containers before are added in reverse order, all
// at the same place.
func around(list []json.RawMessage) (before, after []json.RawMessage) {
	at := slices.IndexFunc(list, func(raw json.RawMessage) bool {
		var c corev1.Container
		return json.Unmarshal(raw, &c) == nil && strings.HasPrefix(c.Name, own)
	})
	return list[:at], list[at+1:]
}

// quote returns a string literal of CEL. CEL understands the escapes of JSON.
func quote(text string) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		panic(err) // cannot happen: a string can always be encoded
	}
	return strings.TrimSpace(out.String())
}

// literal returns a JSON value as a literal of CEL. The values of maps and lists are converted to dyn, because CEL
// requires one type.
func literal(raw json.RawMessage) string {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		panic(err) // cannot happen: it has been encoded before
	}
	return write(value)
}

func write(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case string:
		return quote(v)
	case map[string]any:
		var members []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if v[key] == nil {
				continue
			}
			members = append(members, quote(key)+": dyn("+write(v[key])+")")
		}
		return "{" + strings.Join(members, ", ") + "}"
	case []any:
		var elements []string
		for _, element := range v {
			elements = append(elements, "dyn("+write(element)+")")
		}
		return "[" + strings.Join(elements, ", ") + "]"
	}
	return fmt.Sprint(value) // numbers and booleans
}

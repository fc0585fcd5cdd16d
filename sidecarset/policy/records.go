package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/must"
	"github.com/refit-project/refit/sidecarset/proof"
)

// maxRecord limits the annotations that a policy reads, in bytes: an expression that exceeds its cost limit would end
// the policy, and with failurePolicy Ignore the pod would be created unchanged.
const maxRecord = 8192

// variables returns the variables of a policy: whether the pod claims to have been injected, which annotations its
// client has sent, and which of [proof.Keys] it has not sent.
func (a *added) variables() []admissionregistrationv1.Variable {
	return []admissionregistrationv1.Variable{
		{Name: "listed", Expression: quote(a.set) + " in " + record(v1beta1.AnnotationSidecarSetList) + ".split(',')"},
		{Name: "sent", Expression: "object.metadata.?managedFields.orValue([]).map(m, m.?fieldsV1[?'f:metadata'][?'f:annotations'].orValue({}))"},
		{Name: "free", Expression: write(texts(proof.Keys)) + ".filter(k, size(variables.sent) > 0 && !variables.sent.exists(s, ('f:' + string(k)) in s)).map(k, string(k))"},
	}
}

func texts(list []string) []any {
	values := make([]any, len(list))
	for i := range list {
		values[i] = list[i]
	}
	return values
}

// record returns an expression for an annotation of the pod as text; it is empty if the annotation is missing or too long.
func record(key string) string {
	text := "object.metadata.?annotations[?" + quote(key) + "].orValue('')"
	return "(size(" + text + ") <= " + fmt.Sprint(maxRecord) + " ? " + text + " : '')"
}

// removals returns the terms that remove elements with the names of added ones from a pod that claims to have been
// injected, because nobody has verified them. If a pod without the claim has an element with the same name, it is kept, and the
// API server refuses the pod.
func (a *added) removals() []string {
	const injected = " && e.?env.orValue([]).exists(v, v.name == '" + v1beta1.EnvSidecarInjected + "' && v.?value.orValue('') == 'true')"
	containers := namesOf(a.initBefore, a.initAfter, a.before, a.after)
	var terms []string
	for _, list := range []struct {
		path, condition string
		names           []any
	}{{"/spec/containers", injected, containers}, {"/spec/initContainers", injected, containers}, {"/spec/volumes", "", namesOf(a.volumes)}} {
		if len(list.names) > 0 {
			terms = append(terms, removal(list.path, list.condition, list.names))
		}
	}
	return terms
}

func namesOf(lists ...[]json.RawMessage) []any {
	var names []any
	for _, value := range slices.Concat(lists...) {
		names = append(names, nameOf(value))
	}
	return names
}

// removal returns the term that removes the elements with these names from a list, if they fulfil the condition. Each removal
// moves the elements after it, so the index of the next one is less by one for each removed element before it.
func removal(path, condition string, names []any) string {
	elements := member(path)
	present := func(name string) string {
		return elements + ".exists(e, e.name == " + name + condition + ")"
	}
	index := func(name string) string { return elements + ".map(e, e.name).indexOf(" + name + ")" }
	var terms []string
	for i, name := range names {
		at := index(write(name))
		if i > 0 {
			at += " - " + write(names[:i]) + ".filter(n, " + present("string(n)") + " && " + index("string(n)") + " < " + index(write(name)) + ").size()"
		}
		terms = append(terms, "("+present(write(name))+` ? [JSONPatch{op: "remove", path: `+quote(path+"/")+" + string("+at+")}] : [])")
	}
	return "(variables.listed && has(" + elements + ") ? " + strings.Join(terms, " + ") + " : [])"
}

// Patterns of the records in annotations: a JSON object of hashes, or of flat objects, without escapes.
const (
	patternText   = `"[^"\\\x00-\x1f]*"`
	patternMember = patternText + `:(` + patternText + `|\[(` + patternText + `(,` + patternText + `)*)?\]|null)`
	patternEntry  = `(` + patternText + `|\{(` + patternMember + `(,` + patternMember + `)*)?\})`
	patternRecord = `^\{(` + patternText + `:` + patternEntry + `(,` + patternText + `:` + patternEntry + `)*)?\}$`
)

// annotations returns the expression that adds the SidecarSet to the records of others. Like the webhook, it replaces
// an annotation that is not a valid record.
func (a *added) annotations() string {
	terms := []string{ifMissing("/metadata/annotations", "{}")}
	for _, key := range slices.Sorted(maps.Keys(a.entries)) {
		entry := strings.TrimSuffix(strings.TrimPrefix(string(must.JSON(map[string]json.RawMessage{a.set: a.entries[key]})), "{"), "}")
		own := regexp.QuoteMeta(string(must.JSON(a.set))) + ":" + patternEntry + ",?"
		others := "[" + record(key) + "].map(r, r.matches(" + quote(patternRecord) + ") ? r.replace(r.find(" + quote(own) + "), '', 1) : '{}')"
		value := others + ".map(r, r.substring(0, size(r) - 1)).map(r, r + (r == '{' || r.endsWith(',') ? '' : ',') + " + quote(entry+"}") + ")[0]"
		terms = append(terms, annotationOperation(quote(key), value))
	}
	had := record(v1beta1.AnnotationSidecarSetList)
	value := "variables.listed ? " + had + " : " + had + " == '' ? " + quote(a.set) + " : " + had + " + " + quote(","+a.set)
	terms = append(terms, annotationOperation(quote(v1beta1.AnnotationSidecarSetList), value))
	return strings.Join(append(terms, a.checked()...), " + ")
}

// checked returns the terms that write the same as [proof.Claims.Record]: the policy of required sidecars does not
// trust annotations that the client has sent.
func (a *added) checked() []string {
	var fields []any
	for _, key := range proof.Records {
		fields = append(fields, "f:"+key)
	}
	had := "object.metadata.?annotations[?variables.free[0]].orValue('')"
	terms := []string{"(size(variables.free) > 0 && variables.sent.exists(s, " + write(fields) + ".exists(k, k in s)) ? " +
		annotationOperation("variables.free[0]", had+" == '' ? "+quote(a.set)+" : "+had+" + "+quote(","+a.set)) + " : [])"}
	for _, key := range proof.Keys {
		terms = append(terms, "("+quote(key)+" in object.metadata.?annotations.orValue({}) && variables.sent.exists(s, "+quote("f:"+key)+" in s) ? "+
			`[JSONPatch{op: "remove", path: "/metadata/annotations/" + jsonpatch.escapeKey(`+quote(key)+")}] : [])")
	}
	return terms
}

func annotationOperation(key, value string) string {
	return `[JSONPatch{op: "add", path: "/metadata/annotations/" + jsonpatch.escapeKey(` + key + "), value: " + value + "}]"
}

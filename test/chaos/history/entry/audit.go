package entry

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	refitv1alpha1 "github.com/refit-project/refit/api/refit/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

// Write is one change, or attempt at one, as the API server's audit log has it (audit.k8s.io/v1 Event).
type Write struct {
	Line
	Verb, User, Namespace, Name, Resource, Subresource string
	// Node is the one the user's token is bound to (KEP-4193), empty for others.
	Node           string
	Received, Done time.Time
	Code           int
	// Request, Pod, Pull, Rollout, Trigger, Schedule, SidecarSet and Policy are what was stored, where the audit policy keeps it.
	Request    *v1beta1.ContainerRecreateRequest
	Pod        *corev1.Pod
	Pull       *v1beta1.ImagePullJob
	Rollout    *refitv1alpha1.RestartRollout
	Trigger    *refitv1alpha1.RestartTrigger
	Schedule   *refitv1alpha1.RestartSchedule
	SidecarSet *v1beta1.SidecarSet
	Policy     *refitv1alpha1.InPlaceUpdatePolicy
	// Annotations and Labels are those that a patch changes, where the audit policy keeps it.
	Annotations, Labels []string
	// Ends says that the patch was to end a request, whether or not it was stored.
	Ends bool
	// RefusedOwn says that a policy of Refit has refused a write of one of Refit's programs, by the client's name.
	RefusedOwn bool
	// Disconnected says that the API server failed as its client had gone.
	Disconnected bool
}

// Names in the audit log.
const (
	RequestResource   = "containerrecreaterequests"
	RolloutResource   = refitv1alpha1.ResourceRestartRollout
	PolicyResource    = refitv1alpha1.ResourceInPlaceUpdatePolicy
	ScheduleResource  = refitv1alpha1.ResourceRestartSchedule
	ConfigResource    = "configmaps"
	PullResource      = "imagepulljobs"
	SetResource       = "sidecarsets"
	NodeImageResource = "nodeimages"
	StatusResource    = "status"
	nodeNameExtra     = "authentication.kubernetes.io/node-name"
)

// disconnected is the error of HTTP/2 for a client that has gone before the API server had read its request.
const disconnected = "client disconnected"

// Stored reports whether the API server said that the write took place.
func (w Write) Stored() bool { return w.Code >= 200 && w.Code < 300 }

// Unsure reports whether the write may have taken place although the API server did not say so: it died, or gave up
// waiting for etcd.
func (w Write) Unsure() bool { return w.Code == 0 || w.Code >= 500 }

type auditEvent struct {
	Stage string `json:"stage"`
	Verb  string `json:"verb"`
	User  struct {
		Username string              `json:"username"`
		Extra    map[string][]string `json:"extra"`
	} `json:"user"`
	UserAgent  string `json:"userAgent"`
	RequestURI string `json:"requestURI"`
	Ref        struct {
		Resource    string `json:"resource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		APIGroup    string `json:"apiGroup"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	Status struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"responseStatus"`
	Request  json.RawMessage `json:"requestObject"`
	Response json.RawMessage `json:"responseObject"`
	Received time.Time       `json:"requestReceivedTimestamp"`
	At       time.Time       `json:"stageTimestamp"`
}

// ParseAudit reads an audit log. An API server that is killed leaves half a line behind, to which its successor's
// first is glued; such lines are counted as broken and left out.
func ParseAudit(record string, in io.Reader) (writes []Write, broken int, err error) {
	err = eachLine(record, in, func(number int, text []byte) error {
		var event auditEvent
		if err := json.Unmarshal(text, &event); err != nil {
			broken++
			return nil //nolint:nilerr // counted
		}
		if event.Stage != "ResponseComplete" && event.Stage != "Panic" {
			return nil
		}
		write, err := writeOf(event)
		if err != nil {
			return err
		}
		write.Record, write.Number = record, number
		writes = append(writes, write)
		return nil
	})
	return writes, broken, err
}

func writeOf(event auditEvent) (Write, error) {
	w := Write{
		Verb: event.Verb, User: event.User.Username, Namespace: event.Ref.Namespace, Name: event.Ref.Name,
		Resource: event.Ref.Resource, Subresource: event.Ref.Subresource,
		Received: event.Received, Done: event.At, Code: event.Status.Code,
		Disconnected: event.Status.Message == disconnected,
		RefusedOwn:   strings.HasPrefix(event.UserAgent, "refit-") && strings.Contains(event.Status.Message, "ValidatingAdmissionPolicy 'refit-"),
	}
	if w.Verb == "patch" {
		w.Annotations, w.Labels, w.Ends = changes(event.Request)
	}
	if nodes := event.User.Extra[nodeNameExtra]; len(nodes) == 1 {
		w.Node = nodes[0]
	}
	if !strings.Contains(event.RequestURI, "dryRun=All") { // nothing was stored
		if err := w.decode(event.Response); err != nil {
			return w, err
		}
	}
	w.Time, w.Text = w.Received, w.text()
	return w, nil
}

// changes are the annotations and labels that a merge patch changes, and whether it ends a request.
func changes(patch json.RawMessage) (annotations, labels []string, ends bool) {
	var changes struct {
		Metadata struct {
			Annotations map[string]any `json:"annotations"`
			Labels      map[string]any `json:"labels"`
		} `json:"metadata"`
		Status struct {
			CompletionTime string `json:"completionTime"`
		} `json:"status"`
	}
	if json.Unmarshal(patch, &changes) != nil {
		return nil, nil, false // another kind of patch
	}
	return slices.Sorted(maps.Keys(changes.Metadata.Annotations)), slices.Sorted(maps.Keys(changes.Metadata.Labels)), changes.Status.CompletionTime != ""
}

// decode reads the stored object. Deletions answer with a Status or a list, and other versions' requests are not
// written by Refit; both say enough by their name.
func (w *Write) decode(response json.RawMessage) error {
	if !w.Stored() || len(response) == 0 {
		return nil
	}
	var head struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
	}
	if err := json.Unmarshal(response, &head); err != nil {
		return fmt.Errorf("decode object: %w", err)
	}
	var into any
	switch {
	case head.Kind == "ContainerRecreateRequest" && head.APIVersion == v1beta1.GroupVersion().String():
		w.Request = &v1beta1.ContainerRecreateRequest{}
		into = w.Request
	case head.Kind == "ImagePullJob" && head.APIVersion == v1beta1.GroupVersion().String():
		w.Pull = &v1beta1.ImagePullJob{}
		into = w.Pull
	case head.Kind == "SidecarSet" && head.APIVersion == v1beta1.GroupVersion().String():
		w.SidecarSet = &v1beta1.SidecarSet{}
		into = w.SidecarSet
	case head.Kind == refitv1alpha1.KindRestartRollout && head.APIVersion == refitv1alpha1.GroupVersion().String():
		w.Rollout = &refitv1alpha1.RestartRollout{}
		into = w.Rollout
	case head.Kind == refitv1alpha1.KindRestartTrigger && head.APIVersion == refitv1alpha1.GroupVersion().String():
		w.Trigger = &refitv1alpha1.RestartTrigger{}
		into = w.Trigger
	case head.Kind == refitv1alpha1.KindRestartSchedule && head.APIVersion == refitv1alpha1.GroupVersion().String():
		w.Schedule = &refitv1alpha1.RestartSchedule{}
		into = w.Schedule
	case head.Kind == refitv1alpha1.KindInPlaceUpdatePolicy && head.APIVersion == refitv1alpha1.GroupVersion().String():
		w.Policy = &refitv1alpha1.InPlaceUpdatePolicy{}
		into = w.Policy
	case head.Kind == "Pod" && head.APIVersion == "v1":
		w.Pod = &corev1.Pod{}
		into = w.Pod
	default:
		return nil
	}
	if err := json.Unmarshal(response, into); err != nil {
		return fmt.Errorf("decode %s %s/%s: %w", head.Kind, w.Namespace, w.Name, err)
	}
	if w.Request != nil {
		fillInstances(w.Request)
	}
	return nil
}

// fillInstances puts the IDs of the annotation where the CRD of OpenKruise has no field for them.
func fillInstances(request *v1beta1.ContainerRecreateRequest) {
	var instances map[string]string
	if json.Unmarshal([]byte(request.Annotations[v1beta1.AnnotationInstances]), &instances) != nil {
		return // it is missing, or not what it should be: then nothing is recorded
	}
	states := request.Status.ContainerRecreateStates
	for i := range states {
		if states[i].ContainerID == "" {
			states[i].ContainerID = instances[states[i].Name]
		}
	}
}

func (w *Write) text() string {
	resource := w.Resource
	if w.Subresource != "" {
		resource += "/" + w.Subresource
	}
	text := fmt.Sprintf("%s %s %s/%s by %s: %d", w.Verb, resource, w.Namespace, w.Name, w.User, w.Code)
	if w.Request != nil {
		text += fmt.Sprintf(" (version %s, phase %q", w.Request.ResourceVersion, w.Request.Status.Phase)
		for _, state := range w.Request.Status.ContainerRecreateStates {
			text += fmt.Sprintf(", %s %s %s", state.Name, state.Phase, Short(state.ContainerID))
		}
		text += ")"
	}
	return text
}

// Revision is the place of the stored object in etcd's order.
func Revision(resourceVersion string) int64 {
	n, err := strconv.ParseInt(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Package podfields sets pod-level fields that SidecarSets request by annotations: the service account, and a process
// namespace that is shared by the containers. Package inject adds containers and volumes.
package podfields

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/sidecarset/choice"
	"github.com/refit-project/refit/sidecarset/inject"
)

// defaultAccount is the service account of a pod that does not name one.
const defaultAccount = "default"

// wanted is what a SidecarSet requests.
type wanted struct {
	account        string // empty if it requests none
	shareProcesses bool
}

func of(set *v1beta1.SidecarSet) wanted {
	return wanted{
		account:        set.Annotations[v1beta1.AnnotationSidecarSetServiceAccount],
		shareProcesses: set.Annotations[v1beta1.AnnotationSidecarSetShareProcesses] == "true",
	}
}

// fields are the relevant fields of a new pod.
type fields struct {
	Spec struct {
		ServiceAccountName    string `json:"serviceAccountName"`
		ServiceAccount        string `json:"serviceAccount"` // the deprecated name of the field
		ShareProcessNamespace *bool  `json:"shareProcessNamespace"`
		HostPID               bool   `json:"hostPID"`
		Automount             *bool  `json:"automountServiceAccountToken"`
	} `json:"spec"`
}

// Inject calls inject.Apply, and sets the pod-level fields that the SidecarSets of the plan request. Values in the pod
// are kept, with a warning. candidates are the candidates from which the plan was made.
func Inject(raw []byte, plan inject.Plan, candidates []*choice.Candidate, now time.Time) (inject.Result, error) {
	result, err := inject.Apply(raw, plan, now)
	if err != nil {
		return inject.Result{}, err
	}
	var pod *fields
	for _, c := range candidates {
		asked := of(c.SidecarSet)
		injected := slices.ContainsFunc(plan.Sets, func(set *inject.Set) bool { return set.Name() == c.SidecarSet.Name })
		if !injected || asked == (wanted{}) {
			continue
		}
		if pod == nil {
			pod = &fields{}
			if err := foreign.Object(raw, pod); err != nil {
				return inject.Result{}, fmt.Errorf("decode pod: %w", err)
			}
		}
		pod.set(c.SidecarSet.Name, asked, &result)
	}
	return result, nil
}

func (f *fields) set(name string, asked wanted, result *inject.Result) {
	spec := &f.Spec
	add := func(path string, value any) {
		result.Patch = append(result.Patch, inject.Operation{Op: "add", Path: path, Value: value})
	}
	warn := func(format string, args ...any) {
		result.Warnings = append(result.Warnings, "SidecarSet "+name+" asks for "+fmt.Sprintf(format, args...))
	}
	switch has := cmp.Or(spec.ServiceAccountName, spec.ServiceAccount, defaultAccount); {
	case asked.account == "" || asked.account == has:
	case has != defaultAccount:
		warn("service account %s; the pod keeps %s", asked.account, foreign.Shorten(has, maxName))
	default:
		spec.ServiceAccountName = asked.account
		add("/spec/serviceAccountName", asked.account)
		if spec.ServiceAccount != "" {
			add("/spec/serviceAccount", asked.account)
		}
		if spec.Automount == nil || *spec.Automount {
			warn("service account %s; containers of the pod itself may get its token too: set automountServiceAccountToken: false", asked.account)
		}
	}
	switch share := spec.ShareProcessNamespace; {
	case !asked.shareProcesses || share != nil && *share:
	case share != nil:
		warn("a shared process namespace; the pod has shareProcessNamespace: false")
	case spec.HostPID:
		warn("a shared process namespace; the pod has hostPID: true, with which it cannot have one")
	default:
		spec.ShareProcessNamespace = new(true)
		add("/spec/shareProcessNamespace", true)
	}
}

// maxName limits the name of an account in a warning, in bytes.
const maxName = 253

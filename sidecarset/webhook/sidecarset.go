package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
	sidecarsetadmission "github.com/refit-project/refit/sidecarset/admission"
	"github.com/refit-project/refit/sidecarset/podfields"
)

func allow(context.Context, admission.Request) admission.Response {
	return admission.Allowed("refit-manager leaves SidecarSets to another manager")
}

// sidecarSetHandler admits SidecarSets. It reads other SidecarSets from the API server: SidecarSets change rarely, and
// a second one created right after a first one must see it.
type sidecarSetHandler struct {
	decoder admission.Decoder
	live    client.Reader
	access  access
	// namespaces are the namespaces with ControllerRevisions
	namespaces []string
	log        *slog.Logger
}

// Handle implements admission.Handler.
func (h *sidecarSetHandler) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.SubResource != "" {
		return admission.Allowed("")
	}
	set, old, err := h.decode(request)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, foreign.FieldError(err))
	}
	var all v1beta1.SidecarSetList
	if err := h.live.List(ctx, &all); err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("list SidecarSets: %w", err))
	}
	sent := set.DeepCopy()
	sidecarsetadmission.Complete(set, old)
	others := make([]*v1beta1.SidecarSet, 0, len(all.Items))
	for i := range all.Items {
		if all.Items[i].Name != set.Name {
			others = append(others, &all.Items[i])
		}
	}
	errs := sidecarsetadmission.Check(set, old, others)
	if sidecarsetadmission.Pins(set, old) {
		history, err := h.history(ctx, set)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		errs = append(errs, sidecarsetadmission.CheckPin(set, old, history)...)
	}
	lacking, err := h.access.check(ctx, request.UserInfo, podfields.Rights(sent, old))
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	errs = append(errs, lacking...)
	if len(errs) > 0 {
		invalid := apierrors.NewInvalid(v1beta1.GroupVersion().WithKind(v1beta1.KindSidecarSet).GroupKind(), set.Name, errs)
		h.log.Info("SidecarSet refused", "sidecarset", set.Name, "user", request.UserInfo.Username, "reason", invalid.Error())
		return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &invalid.ErrStatus}}
	}
	operations, err := sidecarsetadmission.Patch(request.Object.Raw, sent, set)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.Patched("", operations...)
}

// history returns the revisions of a SidecarSet. It reads them from the API server, because pinning is rare.
func (h *sidecarSetHandler) history(ctx context.Context, set *v1beta1.SidecarSet) ([]*appsv1.ControllerRevision, error) {
	var history []*appsv1.ControllerRevision
	for _, namespace := range h.namespaces {
		var list appsv1.ControllerRevisionList
		if err := h.live.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{v1beta1.LabelSidecarSetName: set.Name}); err != nil {
			return nil, fmt.Errorf("list ControllerRevisions in namespace %s: %w", namespace, err)
		}
		for i := range list.Items {
			if metav1.IsControlledBy(&list.Items[i], set) {
				history = append(history, &list.Items[i])
			}
		}
	}
	return history, nil
}

func (h *sidecarSetHandler) decode(request admission.Request) (set, old *v1beta1.SidecarSet, err error) {
	set = &v1beta1.SidecarSet{}
	// The API server has not decoded the quantities in it. A quantity out of bounds would keep the decoder busy for hours.
	if err := foreign.CheckObject(request.Object.Raw, set); err != nil {
		return set, nil, err
	}
	err = h.decoder.Decode(request, set)
	// A SidecarSet that was stored without this check can only be replaced, as if it were new.
	if request.Operation == admissionv1.Update && foreign.CheckObject(request.OldObject.Raw, set) == nil {
		old = &v1beta1.SidecarSet{}
		err = errors.Join(err, h.decoder.DecodeRaw(request.OldObject, old))
	}
	return set, old, err
}

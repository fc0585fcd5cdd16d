package injection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/refit-project/refit/api/v1beta1"
	sidecarsetadmission "github.com/refit-project/refit/sidecarset/admission"
)

func allow(context.Context, admission.Request) admission.Response {
	return admission.Allowed("refit-manager leaves SidecarSets to another manager")
}

// sidecarSetHandler admits SidecarSets. It reads the others from the API server: SidecarSets change seldom, and two that are
// created one after the other are to see each other.
type sidecarSetHandler struct {
	decoder admission.Decoder
	sets    client.Reader
	log     *slog.Logger
}

// Handle implements admission.Handler.
func (h *sidecarSetHandler) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.SubResource != "" {
		return admission.Allowed("")
	}
	set, old, err := h.decode(request)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fieldError(err))
	}
	var all v1beta1.SidecarSetList
	if err := h.sets.List(ctx, &all); err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("list SidecarSets: %w", err))
	}
	others := make([]*v1beta1.SidecarSet, 0, len(all.Items))
	for i := range all.Items {
		if all.Items[i].Name != set.Name {
			others = append(others, &all.Items[i])
		}
	}
	if errs := sidecarsetadmission.Check(set, old, others); len(errs) > 0 {
		invalid := apierrors.NewInvalid(v1beta1.GroupVersion().WithKind(v1beta1.KindSidecarSet).GroupKind(), set.Name, errs)
		h.log.Info("SidecarSet refused", "sidecarSet", set.Name, "user", request.UserInfo.Username, "reason", invalid.Error())
		return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &invalid.ErrStatus}}
	}
	before := maps.Clone(set.Labels)
	sidecarsetadmission.Complete(set)
	if maps.Equal(before, set.Labels) {
		return admission.Allowed("")
	}
	return admission.Patched("", jsonpatch.NewOperation("add", "/metadata/labels", set.Labels))
}

func (h *sidecarSetHandler) decode(request admission.Request) (set, old *v1beta1.SidecarSet, err error) {
	set = &v1beta1.SidecarSet{}
	err = h.decoder.Decode(request, set)
	if request.Operation == admissionv1.Update {
		old = &v1beta1.SidecarSet{}
		err = errors.Join(err, h.decoder.DecodeRaw(request.OldObject, old))
	}
	return set, old, err
}

// fieldError names the field of a value that has the wrong type, as the API server names it. What was sent is decoded before
// the API server compares it with the schema.
func fieldError(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	field := strings.ReplaceAll(wrong.Field, ".Container.", ".") // which is embedded, and no field of its own
	return fmt.Errorf("%s: Invalid value: %q: must be of type %s", field, wrong.Value, wrong.Type)
}

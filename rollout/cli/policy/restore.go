package policy

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/refit/v1alpha1"
)

// takeBack deletes the policy that the command has created for an update that it could not begin, or changes it back.
func (s *setter) takeBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
	defer cancel()
	switch {
	case s.made:
		return s.removePolicy(ctx)
	case s.former != nil:
		return s.restorePolicy(ctx)
	}
	return nil
}

func (s *setter) removePolicy(ctx context.Context) error {
	if err := client.IgnoreNotFound(s.API.Delete(ctx, s.governs)); err != nil {
		return fmt.Errorf("delete InPlaceUpdatePolicy %s again: %w", s.governs.Name, err)
	}
	s.Output.Say("InPlaceUpdatePolicy %s is deleted again", s.governs.Name)
	return nil
}

func (s *setter) restorePolicy(ctx context.Context) error {
	err := s.writeFormer(ctx)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("InPlaceUpdatePolicy %s stays changed; what it had before: %s: %w", s.governs.Name, s.former, err)
	}
	s.Output.Say("InPlaceUpdatePolicy %s is changed back: %s", s.governs.Name, s.former)
	return nil
}

var errChangedSince = errors.New("somebody else has changed it since")

// writeFormer writes what the policy had in the fields that the command has changed, if they still have what it has written.
func (s *setter) writeFormer(ctx context.Context) error {
	now := &v1alpha1.InPlaceUpdatePolicy{}
	if err := s.API.Get(ctx, s.key(s.governs.Name), now); err != nil {
		return err
	}
	s.governs = now
	since, err := s.changeOfPolicy()
	switch {
	case err != nil:
		return err
	case since != "":
		return errChangedSince
	}
	return s.API.Patch(ctx, now, client.RawPatch(types.MergePatchType, s.former))
}

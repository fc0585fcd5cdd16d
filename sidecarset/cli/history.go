package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/console"
	"github.com/refit-project/refit/internal/table"
	"github.com/refit-project/refit/sidecarset/revision"
)

// History prints the revisions of a SidecarSet, or what the one with a number stores.
func (c Config) History(ctx context.Context, options table.Options, out io.Writer, name string, number int64) error {
	var set v1beta1.SidecarSet
	if err := c.API.Get(ctx, client.ObjectKey{Name: name}, &set); err != nil {
		return refused(err)
	}
	history, err := c.history(ctx, &set)
	if err != nil {
		return refused(err)
	}
	if number != 0 {
		one, err := choose(history, set.Status.LatestRevision, number)
		if err != nil {
			return fmt.Errorf("%w: SidecarSet %s: %w", console.ErrRefused, name, err)
		}
		spec, err := revision.Restore(one)
		if err != nil {
			return fmt.Errorf("read revision %d: %w", number, err)
		}
		text, err := yaml.Marshal(spec)
		if err != nil {
			return fmt.Errorf("print revision %d: %w", number, err)
		}
		_, err = out.Write(text)
		return err
	}
	shown := table.Table{
		Columns: []table.Column{{Name: "REVISION"}, {Name: "NAME"}, {Name: "PRESENT"}, {Name: "IMAGES"}, {Name: "CUSTOM VERSION"}, {Name: "AGE"}},
		Nothing: "no revisions of SidecarSet " + name + " in namespace " + c.System,
	}
	for _, one := range history {
		r, err := describe(one, set.Status.LatestRevision)
		if err != nil {
			return err
		}
		present := ""
		if r.Present {
			present = "yes"
		}
		shown.Rows = append(shown.Rows, table.Row{Object: one, Cells: []any{
			r.Number, r.Name, present, r.Images, r.CustomVersion, duration.HumanDuration(c.Now().Sub(r.Created)),
		}})
	}
	return table.Print(out, options, c.API.Scheme(), shown)
}

// Revision is a revision of a SidecarSet.
type Revision struct {
	Number                      int64
	Name, Images, CustomVersion string
	// Present says that it is the latest one, which pods are updated to.
	Present bool
	Created time.Time
}

func describe(one *appsv1.ControllerRevision, latest string) (Revision, error) {
	spec, err := revision.Restore(one)
	if err != nil {
		return Revision{}, fmt.Errorf("read revision %d: %w", one.Revision, err)
	}
	return Revision{
		Number: one.Revision, Name: one.Name, Images: imagesOf(spec), CustomVersion: one.Labels[v1beta1.LabelSidecarSetCustomVersion],
		Present: one.Name == latest, Created: one.CreationTimestamp.Time,
	}, nil
}

// imagesOf returns the images of a SidecarSet, by container.
func imagesOf(spec *v1beta1.SidecarSetSpec) string {
	var images []string
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		images = append(images, container.Name+"="+container.Image)
	}
	return strings.Join(images, ",")
}

// completed is the state of a SidecarSet without pods to update.
const completed = "Completed"

// errNotUpdated means that a rollout has ended, and not all pods could be updated.
var errNotUpdated = errors.New("the rollout has not succeeded")

// poll is the time between two reads of a SidecarSet that is followed.
const poll = time.Second

// Follow prints the progress of the rollout of a SidecarSet until all of its pods are updated.
func (c Config) Follow(ctx context.Context, output *console.Output, name string) error {
	again := time.NewTicker(poll)
	defer again.Stop()
	silent := console.Silent{Output: output, Kind: "SidecarSets", Feature: "sidecarSets"}
	for {
		var set v1beta1.SidecarSet
		switch err := c.API.Get(ctx, client.ObjectKey{Name: name}, &set); {
		case ctx.Err() != nil:
			return fmt.Errorf("%w; the rollout continues\n  last:     %s\n  pause it: kubectl refit rollout pause sidecarset/%s", console.Cause(ctx), output.Last(), name)
		case console.Unreachable(err):
			output.Progress("trying again until the API server can be reached: " + err.Error())
		case err != nil:
			return err
		default:
			state, detail := State(&set)
			line := strings.TrimSuffix(fmt.Sprintf("%d of %d pods updated, %d ready, %d being updated, %d failed: %s: %s",
				set.Status.UpdatedPods, set.Status.MatchedPods, set.Status.ReadyPods, set.Status.UpdatingPods, set.Status.FailedPods, state, detail), ": ")
			if state == completed {
				output.Say("sidecarset/%s: %s", name, line)
				return nil
			}
			if strings.HasPrefix(state, completed) {
				return fmt.Errorf("%w: SidecarSet %s: %s", errNotUpdated, name, line)
			}
			output.Progress(line)
			silent.See(set.Status.ObservedGeneration == set.Generation)
		}
		select {
		case <-ctx.Done():
		case <-again.C:
		}
	}
}

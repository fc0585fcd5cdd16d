package plan_test

import (
	"errors"
	"fmt"

	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/plan/plantest"
)

// A new image and more CPU for one container, in two stages.
func ExampleNew() {
	running := plantest.Template()
	wanted := running.DeepCopy()
	wanted.Spec.Containers[0].Image = "app:2"
	wanted.Spec.Containers[0].Resources = plantest.Resources("200m", "")
	update, err := plan.New(running, wanted, plan.Options{DrainSeconds: 5})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, stage := range update.Stages {
		fmt.Println(i+1, stage.Kind, stage.Containers())
	}
	fmt.Println("stopped and started again:", update.Stops(&running.Spec))
	// Output:
	// 1 Resize [app]
	// 2 Image [app]
	// stopped and started again: [app]
}

// Changes that are not possible in place are reported field by field.
func ExampleNew_refused() {
	running := plantest.Template()
	wanted := running.DeepCopy()
	wanted.Spec.Containers[0].Command = []string{"/app", "--verbose"}
	wanted.Spec.InitContainers[0].Image = "setup:2"
	_, err := plan.New(running, wanted, plan.Options{})
	var refused *plan.RefusedError
	if errors.As(err, &refused) {
		for _, refusal := range refused.Refusals {
			fmt.Printf("%s: %s\n", refusal.Reason, refusal)
		}
	}
	// Output:
	// InitContainer: spec.initContainers[0]: init container setup runs once, before the others, and is not run again; recreate the pod
	// ImmutableField: spec.containers[0].command: cannot be changed in a running pod; recreate the pod
}

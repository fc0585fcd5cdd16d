package inplace_test

import (
	"errors"
	"fmt"

	"github.com/refit-project/refit/inplace"
)

// A new image and more CPU for one container, in two stages.
func ExamplePlan() {
	running := template()
	wanted := running.DeepCopy()
	wanted.Spec.Containers[0].Image = "app:2"
	wanted.Spec.Containers[0].Resources = resources("200m", "")
	update, err := inplace.Plan(running, wanted, inplace.Options{DrainSeconds: 5})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, stage := range update.Stages {
		fmt.Println(i+1, stage.Kind, stage.Containers())
	}
	fmt.Println("stopped and started anew:", update.Stops(&running.Spec))
	// Output:
	// 1 Resize [app]
	// 2 Image [app]
	// stopped and started anew: [app]
}

// What cannot be done in place is told field by field.
func ExamplePlan_refused() {
	running := template()
	wanted := running.DeepCopy()
	wanted.Spec.Containers[0].Command = []string{"/app", "--verbose"}
	wanted.Spec.InitContainers[0].Image = "setup:2"
	_, err := inplace.Plan(running, wanted, inplace.Options{})
	var refused *inplace.RefusedError
	if errors.As(err, &refused) {
		for _, refusal := range refused.Refusals {
			fmt.Printf("%s: %s\n", refusal.Reason, refusal)
		}
	}
	// Output:
	// InitContainer: spec.initContainers[0]: init container setup runs once, before the others, and is not run again; recreate the pod
	// ImmutableField: spec.containers[0].command: cannot be changed in a running pod; recreate the pod
}

// A whole update: plan, write the record, and then do what Next says until it is done. The world of this example is a
// simulated API server and node; a program calls Next when its watch delivers the pod.
func ExampleNext() {
	w := pullable(newWorld(podOf(template(), true), false))
	if err := begin(w, 1, inplace.Options{}); err != nil {
		fmt.Println(err)
		return
	}
	for {
		decision, err := w.next(w.pod.DeepCopy()) // ReadRecord, ReadFacts, Next, Apply
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(decision.Kind, "-", decision.Message)
		if decision.Kind == inplace.KindDone {
			return
		}
		if decision.Kind == inplace.KindWait {
			w.see()
			w.act() // stops the old instance
			w.act() // starts the new one
			w.report()
		}
	}
	// Output:
	// Step - take the pod out of its Services
	// Step - set the image of container app to app:2
	// Wait - waiting for kubelet to see the change of container app
	// Step - put the pod back into its Services
	// Done - updated
}

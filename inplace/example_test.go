package inplace_test

import (
	"context"
	"fmt"

	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/plan"
	"github.com/refit-project/refit/inplace/plan/plantest"
)

// A whole update: plan, make the first steps, and then do what Next says until it is done. The world of this example is a
// simulated API server and node; a program calls Next when its watch delivers the pod.
func ExampleNext() {
	w := pullable(newWorld(podOf(plantest.Template(), true), false))
	wanted := w.pod.DeepCopy()
	wanted.Spec.Containers[0].Image = "app:2"
	update, err := plan.New(plan.Template(w.pod), plan.Template(wanted), plan.Options{})
	for again := true; again && err == nil; {
		var step *inplace.Step
		if step, err = inplace.Start(w.pod, &update, w.now); err == nil {
			fmt.Println("Start -", step.Message)
			_, err = inplace.Apply(context.Background(), w, w.pod, step)
			again = step.Kind == inplace.StepDrain
		}
	}
	for err == nil {
		decision, err := w.next(w.pod.DeepCopy()) // record.Read, reported.Read, Next, Apply
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
	// Start - take the pod out of its Services
	// Start - set the image of container app to app:2
	// Wait - waiting for kubelet to see the change of container app
	// Step - put the pod back into its Services
	// Done - updated
}

package inplace_test

import (
	"fmt"

	"github.com/refit-project/refit/inplace"
	"github.com/refit-project/refit/inplace/plan"
)

// A whole update: plan, write the record, and then do what Next says until it is done. The world of this example is a
// simulated API server and node; a program calls Next when its watch delivers the pod.
func ExampleNext() {
	w := pullable(newWorld(podOf(template(), true), false))
	if err := begin(w, 1, plan.Options{}); err != nil {
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

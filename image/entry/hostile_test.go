package entry_test

import (
	"testing"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/image/entry"
	"github.com/refit-project/refit/image/jobplan"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/test/kit/hostile"
	"github.com/refit-project/refit/test/kit/watchdog"
)

// FuzzNodeImages makes NodeImages and ImagePullJobs of their parts: what the runtime is asked to pull can be read again.
func FuzzNodeImages(f *testing.F) {
	for _, seed := range hostile.Seeds() {
		f.Add(seed, []byte{1})
		f.Add([]byte{1}, seed)
	}
	f.Fuzz(func(t *testing.T, nodeSeed, jobSeed []byte) {
		watchdog.Watch(t, func() {
			var node v1beta1.NodeImage
			if foreign.Object(hostile.JSON(&node, nodeSeed), &node) != nil {
				return
			}
			states := map[image.Target]image.State{}
			for _, want := range image.Wanted(node.Spec) {
				states[want.Target] = image.State{}
				if _, err := want.Full(); err == nil {
					if _, err := image.Parse(want.String()); err != nil {
						t.Errorf("to be pulled, and not readable: %v", err)
					}
				}
				image.Known(&node.Status, want)
			}
			image.Status(node.Spec, states)
			var job v1beta1.ImagePullJob
			if foreign.Object(hostile.JSON(&job, jobSeed), &job) == nil {
				jobplan.Job(&job, []*v1beta1.NodeImage{&node}, time.Unix(1e9, 0))
				entry.Request(&node, &job, nil, time.Unix(1e9, 0))
			}
		})
	})
}

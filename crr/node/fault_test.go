package node

import (
	"testing"

	"github.com/refit-project/refit/crr"
)

// A panic about one request ended the daemon of the node, again after each start.
func TestARequestWhoseWritePanicsHoldsUpNoOtherPod(t *testing.T) {
	t.Parallel()
	n := newNode(t, func(n *node) {
		n.fail = func(request *crr.Request) error {
			if request.Name == "bad" {
				panic("planted")
			}
			return nil
		}
	})
	n.request("bad", n.pod("hit", app()), nil, "app")
	n.request("good", n.pod("web", app()), nil, "app")
	if got := n.ends("good"); got != succeeded {
		t.Errorf("the request of the other pod ended as %s", got)
	}
	if crr.Completed(n.current("bad")) {
		t.Error("the request that cannot be written has ended")
	}
}

package status_test

import (
	"strings"
	"testing"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/cli/status"
)

func TestTheDetailOfARequestThatDrainsHasTheEndOfTheDrain(t *testing.T) {
	t.Parallel()
	r := request("shop", "web-x", 0)
	r.Spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{UnreadyGracePeriodSeconds: new(int64(10))}
	r.Status.Phase = v1beta1.ContainerRecreateRequestRecreating
	v1beta1.SetPreRecreateGrace(&r.Status, at(0).Time, "")
	if got := status.Describe(r).Detail; !strings.HasPrefix(got, "draining until ") {
		t.Errorf("%q", got)
	}
}

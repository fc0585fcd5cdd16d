package manager

import (
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection"
)

// The worst case is a leader that dies right after it has renewed its Lease, and a replica that has just looked at it.
func TestAnotherReplicaLeadsWithin20Seconds(t *testing.T) {
	t.Parallel()
	retry := float64(retryPeriod)
	attempt := time.Duration(retry + leaderelection.JitterFactor*retry)
	if worst := attempt + leaseDuration + attempt; worst > 20*time.Second {
		t.Errorf("another replica leads after up to %s", worst)
	}
	// client-go refuses these when the manager starts.
	if leaseDuration <= renewDeadline || float64(renewDeadline) <= leaderelection.JitterFactor*retry {
		t.Errorf("lease %s, deadline %s, retry %s: client-go wants each much longer than the next", leaseDuration, renewDeadline, retryPeriod)
	}
}

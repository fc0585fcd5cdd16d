package daemonfault

import (
	"context"
	"time"

	"github.com/refit-project/refit/test/chaos/cluster"
	"github.com/refit-project/refit/test/chaos/records"
)

// FollowAudit follows the audit log from an offset on and shows each line to whoever waits for one.
func (d *Daemons) FollowAudit(ctx context.Context, from int64) error {
	const interval = 10 * time.Millisecond
	log, err := records.OpenTail(d.cluster.AuditLog(), from)
	if err != nil {
		return err
	}
	defer log.Close()
	for {
		line, err := log.Next()
		if err != nil {
			return err
		}
		if line == nil {
			if cluster.Pause(ctx, interval) != nil {
				return nil
			}
			continue
		}
		if audited := d.audited(); audited != nil && audited(line) {
			d.setAudited(nil)
		}
	}
}

func (d *Daemons) audited() func([]byte) bool {
	d.auditLock.Lock()
	defer d.auditLock.Unlock()
	return d.onAudit
}

func (d *Daemons) setAudited(f func([]byte) bool) {
	d.auditLock.Lock()
	defer d.auditLock.Unlock()
	d.onAudit = f
}

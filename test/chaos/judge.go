package chaos

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/refit-project/refit/test/chaos/cluster"
	"github.com/refit-project/refit/test/chaos/history"
	"github.com/refit-project/refit/test/chaos/history/verdict"
	"github.com/refit-project/refit/test/chaos/load"
	"github.com/refit-project/refit/test/chaos/records"
)

// Judge judges the records of an earlier run again, whatever its load was. A folder without an audit log is an error: nothing would be
// found in it.
func Judge(folder string) (verdict.Report, error) {
	if _, err := os.Stat(filepath.Join(folder, "audit.jsonl")); err != nil {
		return verdict.Report{}, fmt.Errorf("read records: %w", err)
	}
	found, err := records.Read(folder)
	if err != nil {
		return verdict.Report{}, err
	}
	return history.Check(found, options(verdict.Least{})), nil
}

func options(least verdict.Least) verdict.Options {
	return verdict.Options{
		Daemon: account(cluster.DaemonName), Manager: account(cluster.ManagerName), Patience: patience,
		Probed: load.ProbedCondition, Follow: load.FollowTime, Reconnect: load.ReconnectTime, Least: least,
	}
}

func account(name string) string {
	return "system:serviceaccount:" + cluster.SystemNamespace + ":" + name
}

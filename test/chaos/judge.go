package chaos

import "github.com/refit-project/refit/test/chaos/history"

// Judge judges the records of an earlier run again, whatever its load was.
func Judge(folder string) (history.Report, error) {
	records, err := ReadRecords(folder)
	if err != nil {
		return history.Report{}, err
	}
	return history.Check(records, options(history.Least{})), nil
}

func options(least history.Least) history.Options {
	return history.Options{Daemon: account(daemonName), Manager: account(managerName), Patience: patience, Probed: probedCondition, Follow: followTime, Least: least}
}

func account(name string) string { return "system:serviceaccount:" + systemNamespace + ":" + name }

package history_test

import (
	"testing"

	"github.com/refit-project/refit/test/chaos/history/entry"
)

// restartsOf is kubelet's word on how often the container of a daemon was restarted.
func (s *fixture) restartsOf(seconds float64, restarts int32) {
	s.t.Helper()
	s.pod(0.1, "uid-3", "f1", true)
	pod := s.pods["uid-3"].DeepCopy()
	pod.Status.ContainerStatuses[0].RestartCount = restarts
	s.write(seconds, ref{"patch", kubeletUser, "pods", "status", "refit-system", "refit-daemon-abcde"}, 200, pod)
}

func TestPlantedFailuresOfAdmission(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]planted{
		"a request refused while the certificate is replaced": {want: "admission", proof: "another certificate", plant: func(s *fixture) {
			s.fault(entry.KindCertificates, 2, 6, false)
			s.write(4, ref{"create", user, "containerrecreaterequests", "", "chaos", "r1"}, 500, nil)
		}},
		"and soon after": {want: "admission", proof: "another certificate", plant: func(s *fixture) {
			s.fault(entry.KindCertificates, 2, 6, false)
			s.write(12, ref{"create", user, "containerrecreaterequests", "", "chaos", "r1"}, 500, nil)
		}},
		"a request refused while the webhooks are slow": {want: "admission", proof: "the webhooks were slow", plant: func(s *fixture) {
			s.fault(entry.KindSlowWebhook, 2, 20, true)
			s.write(4, ref{"create", user, "containerrecreaterequests", "", "chaos", "r1"}, 500, nil)
		}},
		"a request refused while the certificate is replaced, after a fault of a daemon": {want: "admission", proof: "another certificate", plant: func(s *fixture) {
			s.faultOn("node-1", "daemon-kill", 1, 3)
			s.fault(entry.KindCertificates, 2, 6, false)
			s.write(4, ref{"create", user, "containerrecreaterequests", "", "chaos", "r1"}, 500, nil)
		}},
		"a status refused while the certificate is replaced, before the daemon that writes it is killed": {want: "admission", proof: "another certificate", plant: func(s *fixture) {
			s.fault(entry.KindCertificates, 2, 6, false)
			s.write(4, ref{"patch", daemonUser, "containerrecreaterequests", "status", "chaos", "r1"}, 504, nil)
			s.faultOn("node-1", entry.KindDaemonKill, 5.5, 9)
		}},
		"a status refused while the certificate is replaced, as the daemon of another node is killed": {want: "admission", proof: "another certificate", plant: func(s *fixture) {
			s.fault(entry.KindCertificates, 2, 6, false)
			s.write(4, ref{"patch", daemonUser, "containerrecreaterequests", "status", "chaos", "r1"}, 504, nil)
			s.faultOn("node-2", entry.KindDaemonKill, 4, 9)
		}},
		"a pod refused while no manager answers": {want: "admission", proof: "no webhook answered", plant: func(s *fixture) {
			s.fault(entry.KindManagerAway, 2, 20, true)
			s.write(4, ref{"create", user, "pods", "", "chaos", "p1"}, 500, nil)
		}},
		"a pod's status not written by kubelet while no manager answers": {want: "admission", proof: "no webhook answered", plant: func(s *fixture) {
			s.fault(entry.KindManagerAway, 2, 20, true)
			s.write(4, ref{"patch", "system:node:node-1", "pods", "status", "chaos", "p1"}, 504, nil)
		}},
		"an Event of the daemon refused by a policy of Refit": {want: "admission", proof: "refused a write of Refit", plant: func(s *fixture) {
			s.writeAs("refit-daemon/dev", 4, ref{"create", daemonUser, "events", "", "default", "node-1.1"}, refusedByPolicy, nil, nil)
		}},
		"a daemon that is restarted as it has no CPU time": {want: "crash", proof: "hardly any CPU time", plant: func(s *fixture) {
			s.restartsOf(1, 3)
			s.faultOn("node-1", entry.KindThrottle, 2, 20)
			s.restartsOf(15, 4)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found(t, test)
		})
	}
}

func TestAManagerThatWasSuspendedBreaksItsCallsOff(t *testing.T) {
	t.Parallel()
	s := opening(t)
	s.fault(entry.KindManagerAway, 2, 20, true)
	s.write(4, ref{"patch", managerUser, "pods", "status", "chaos", "p1"}, 504, nil)
	if report := s.check(); !report.OK() {
		t.Errorf("violations %v, refused %v", report.Violations, report.Refused)
	}
}

func TestADaemonThatIsKilledBreaksItsCallsOff(t *testing.T) {
	t.Parallel()
	s := opening(t)
	s.fault(entry.KindCertificates, 2, 6, false)
	s.write(4, ref{"patch", daemonUser, "containerrecreaterequests", "status", "chaos", "r1"}, 504, nil)
	s.faultOn("node-1", entry.KindDaemonKill, 4.2, 9)
	if report := s.check(); !report.OK() {
		t.Errorf("violations %v, refused %v", report.Violations, report.Refused)
	}
}

var refusedByPolicy = map[string]any{"code": 403, "message": "events is forbidden: ValidatingAdmissionPolicy 'refit-daemon-events' with binding"}

func TestOthersMayBeRefusedByPolicies(t *testing.T) {
	t.Parallel()
	s := opening(t)
	s.writeAs("chaos/v0.0.0", 4, ref{"create", daemonUser, "events", "", "default", "node-2.1"}, refusedByPolicy, nil, nil)
	s.writeAs("refit-daemon/dev", 4, ref{"create", daemonUser, "events", "", "chaos", "p1.1"}, map[string]any{"code": 403, "message": "because it is being terminated"}, nil, nil)
	if report := s.check(); !report.OK() {
		t.Errorf("violations %v, refused %v", report.Violations, report.Refused)
	}
}

func TestWhatDependsOnTheManagersMayBeRefusedWithoutThem(t *testing.T) {
	t.Parallel()
	s := opening(t)
	s.fault(entry.KindManagerAway, 2, 20, true)
	s.write(4, ref{"create", user, "containerrecreaterequests", "", "chaos", "r1"}, 500, nil)
	s.write(4, ref{"create", user, "pods", "", "chaos", "p1"}, 409, nil)
	s.fault(entry.KindCertificates, 60, 70, false)
	s.fault(entry.KindAPIServerKill, 68, 72, true)
	s.write(71, ref{"create", user, "containerrecreaterequests", "", "chaos", "r2"}, 500, nil)
	s.restartsOf(75, 3)
	s.faultOn("node-2", entry.KindThrottle, 80, 90)
	s.restartsOf(85, 4)
	if report := s.check(); !report.OK() {
		t.Errorf("violations %v, refused %v", report.Violations, report.Refused)
	}
}

package history_test

import (
	"testing"

	"github.com/refit-project/refit/test/chaos/history/entry"
)

// update is a line of the logs of a pod whose sidecar updates files.
func (s *fixture) update(seconds float64, container, event, text string) {
	s.t.Helper()
	line := map[string]any{"time": at(seconds), "event": event, "container": container, "pod_uid": "uid-9", "text": text}
	if event == "signal" {
		line["signal"], line["text"] = text, ""
	}
	s.line(&s.updates, line)
}

// updated is an update that is carried out as it should be.
func (s *fixture) updated(seconds float64, version string) {
	s.t.Helper()
	s.update(seconds, "asker", "update", version)
	s.update(seconds+0.1, "app", "file", version)
	s.update(seconds+0.11, "app", "signal", "SIGHUP")
	s.update(seconds+0.11, "app", "loaded", version)
	s.update(seconds+0.2, "asker", "updated", version+" 200")
}

func TestGoodUpdates(t *testing.T) {
	t.Parallel()
	s := opening(t)
	s.update(1, "app", "file", "")
	s.updated(2, "v0-good")
	s.update(5, "asker", "update", "v1-poison")
	s.update(5.1, "app", "file", "v1-poison")
	s.update(5.1, "app", "signal", "SIGHUP")
	s.update(9, "app", "file", "v0-good")
	s.update(9, "app", "signal", "SIGHUP")
	s.update(9, "app", "loaded", "v0-good")
	s.update(9.1, "asker", "updated", "v1-poison 500")
	s.update(11, "asker", "update", "v2-short")
	s.update(11.1, "asker", "updated", "v2-short 500")
	s.update(13, "asker", "update", "v3-good")
	s.fault(entry.KindSidecarKill, 13.1, 15, false)
	s.update(13.1, "asker", "updated", "v3-good 0 connection reset")
	s.update(14, "app", "file", "v3-good")
	s.fault(entry.KindDiskFull, 39, 45, false)
	s.update(40, "asker", "update", "v4-good")
	s.update(40.1, "asker", "updated", "v4-good 500")
	s.fault(entry.KindNodeLost, 60, 90, true)
	s.update(85, "asker", "update", "v5-good")
	s.update(85.1, "asker", "updated", "v5-good 500")
	report := s.check()
	if t := report.Totals; !report.OK() || t.Updates != 6 || t.Updated != 1 || t.Refused != 4 {
		s.t.Errorf("violations %v, refused %v, %+v", report.Violations, report.Refused, t)
	}
}

// The times are from a run on a machine with too much to do: the application gets the signal at once, and reads late.
func TestFollowerThatReadsLate(t *testing.T) {
	t.Parallel()
	for seen, ok := range map[float64]bool{7.738: true, 8.1: false} {
		s := opening(t)
		s.updated(2, "v0-good")
		s.update(2.27, "asker", "update", "v1-poison")
		s.update(2.406, "app", "file", "v1-poison")
		s.update(7.115, "asker", "updated", "v1-poison 500")
		s.update(7.233, "app", "signal", "SIGHUP")
		s.update(seen, "app", "file", "v0-good")
		s.update(8.62, "asker", "update", "v2-short")
		if report := s.check(); report.OK() != ok {
			t.Errorf("seen at %v: violations %v", seen, report.Violations)
		}
	}
}

// The program that has loaded a version has seen it in place, even if the follower's own look comes later.
func TestWhatTheProgramHasLoadedIsInPlace(t *testing.T) {
	t.Parallel()
	for loaded, ok := range map[string]bool{"v0-good": true, "v1-poison": false} {
		s := opening(t)
		s.updated(2, "v0-good")
		s.update(4.2, "asker", "update", "v1-poison")
		s.update(5.1, "app", "file", "v1-poison")
		s.update(11.8, "app", "signal", "SIGHUP")
		s.update(12.9, "app", "loaded", loaded)
		s.update(13.1, "asker", "updated", "v1-poison 500")
		s.update(15, "asker", "update", "v2-short")
		s.update(15.1, "app", "file", "v0-good")
		if report := s.check(); report.OK() != ok {
			t.Errorf("loaded %s: violations %v", loaded, report.Violations)
		}
	}
}

func TestNobodySeesWhatIsInPlaceWhileTheFollowerIsDown(t *testing.T) {
	t.Parallel()
	s := opening(t)
	s.updated(2, "v0-good")
	s.update(5, "asker", "update", "v1-poison")
	s.update(5.1, "app", "file", "v1-poison")
	s.fault(entry.KindWatchedKill, 6, 20, false)
	s.update(9.1, "asker", "updated", "v1-poison 500")
	s.update(11, "asker", "update", "v2-poison")
	s.update(11.1, "asker", "updated", "v2-poison 500")
	s.update(15, "app", "file", "v0-good")
	if report := s.check(); !report.OK() {
		t.Errorf("violations %v", report.Violations)
	}
}

func TestPlantedUpdates(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]planted{
		"a file that is not whole": {want: "I10", proof: "saw torn", plant: func(s *fixture) {
			s.updated(2, "v0-good")
			s.update(3, "app", "torn", "torn: 17 bytes")
		}},
		"a version whose digest is wrong": {want: "I10", proof: "not to be put in place", plant: func(s *fixture) {
			s.update(2, "asker", "update", "v0-digest")
			s.update(2.1, "app", "file", "v0-digest")
			s.update(2.2, "asker", "updated", "v0-digest 500")
		}},
		"a good update is refused as if it were a bad one": {want: "I10", proof: "was refused with 422", plant: func(s *fixture) {
			s.update(2, "asker", "update", "v0-good")
			s.update(2.2, "asker", "updated", "v0-good 422")
		}},
		"a good update is refused when the disk has had room again for a while": {want: "I10", proof: "v0-good was refused with 500", plant: func(s *fixture) {
			s.fault(entry.KindDiskFull, 2, 7, false)
			s.update(11, "asker", "update", "v0-good")
			s.update(11.2, "asker", "updated", "v0-good 500")
		}},
		"half a download is accepted": {want: "I10", proof: "v0-short was accepted", plant: func(s *fixture) {
			s.update(2, "asker", "update", "v0-short")
			s.update(2.2, "asker", "updated", "v0-short 200")
		}},
		"accepted before the program has it": {want: "I10", proof: `the application has ""`, plant: func(s *fixture) {
			s.update(2, "asker", "update", "v0-good")
			s.update(2.1, "app", "file", "v0-good")
			s.update(2.2, "asker", "updated", "v0-good 200")
		}},
		"signalled before the files are there": {want: "I10", proof: "the application has \"v0-good\"", plant: func(s *fixture) {
			s.updated(2, "v0-good")
			s.update(5, "asker", "update", "v1-good")
			s.update(5.1, "app", "signal", "SIGHUP")
			s.update(5.1, "app", "loaded", "v0-good")
			s.update(5.2, "app", "file", "v1-good")
			s.update(5.3, "asker", "updated", "v1-good 200")
		}},
		"refused, and left in place": {want: "I10", proof: `is "v1-poison", want "v0-good"`, plant: func(s *fixture) {
			s.updated(2, "v0-good")
			s.update(5, "asker", "update", "v1-poison")
			s.update(5.1, "app", "file", "v1-poison")
			s.update(9.1, "asker", "updated", "v1-poison 500")
		}},
		"left in place, and the follower killed before it": {want: "I10", proof: `is "v1-poison", want "v0-good"`, plant: func(s *fixture) {
			s.updated(2, "v0-good")
			s.fault(entry.KindWatchedKill, 3, 4, false)
			s.update(4, "app", "file", "v0-good")
			s.update(5, "asker", "update", "v1-poison")
			s.update(5.1, "app", "file", "v1-poison")
			s.update(9.1, "asker", "updated", "v1-poison 500")
		}},
		"refused without a reason": {want: "I10", proof: "nothing was broken", plant: func(s *fixture) {
			s.fault(entry.KindSidecarLimit, 1, 10, false)
			s.update(2, "asker", "update", "v0-good")
			s.update(2.2, "asker", "updated", "v0-good 500")
		}},
		"refused when the sidecar has had its priority again for a while": {want: "I10", proof: "nothing was broken", plant: func(s *fixture) {
			s.fault(entry.KindSidecarNice, 2, 10, false)
			s.update(14, "asker", "update", "v0-good")
			s.update(14.2, "asker", "updated", "v0-good 500")
		}},
		"torn while the sidecar has the least priority": {want: "I10", proof: "a reader saw", plant: func(s *fixture) {
			s.fault(entry.KindSidecarNice, 1, 10, false)
			s.update(2, "asker", "update", "v0-good")
			s.update(2.1, "app", "torn", "half of v0-good")
		}},
		"refused while the sidecar of another node was killed": {want: "I10", proof: "nothing was broken", plant: func(s *fixture) {
			s.pod(1, "uid-9", "e1", true)
			s.faultOn("node-2", entry.KindSidecarKill, 1, 10)
			s.update(2, "asker", "update", "v0-good")
			s.update(2.2, "asker", "updated", "v0-good 500")
		}},
		"a sidecar that does not answer": {want: "I10", proof: "was not carried out (0)", plant: func(s *fixture) {
			s.updated(2, "v0-good")
			s.fault(entry.KindSidecarKill, 10, 15, false)
			s.update(40, "asker", "update", "v1-good")
			s.update(45, "asker", "updated", "v1-good 0 timeout")
		}},
		"a sidecar that restores for ever": {want: "I10", proof: "was not carried out (503)", plant: func(s *fixture) {
			s.updated(2, "v0-good")
			s.update(40, "asker", "update", "v1-good")
			s.update(40.1, "asker", "updated", "v1-good 503")
		}},
		"another process is signalled": {want: "I10", proof: "container asker was signalled", plant: func(s *fixture) {
			s.updated(2, "v0-good")
			s.update(2.1, "asker", "signal", "SIGHUP")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found(t, test)
		})
	}
}

package verdict_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refit-project/refit/hack/test/verdict"
)

func TestReadCountsTestsAndNotPackages(t *testing.T) {
	t.Parallel()
	got, err := verdict.Read(strings.NewReader(`{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"--- PASS"}
{"Action":"pass","Package":"p","Test":"TestA/sub","Elapsed":0}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0}
{"Action":"skip","Package":"p","Test":"TestB","Elapsed":0}
{"Action":"output","Package":"p","Test":"TestNew","Output":"    versions_test.go:51: needs Kubernetes 1.36 for MutatingAdmissionPolicy\n"}
{"Action":"skip","Package":"p","Test":"TestNew","Elapsed":0}
{"Action":"fail","Package":"p","Test":"TestC","Elapsed":0}
{"Action":"pass","Package":"p","Elapsed":0.1}
{"Action":"skip","Package":"q","Elapsed":0}
`))
	want := verdict.Tests{Passed: []string{"p.TestA/sub", "p.TestA"}, Failed: []string{"p.TestC"}, Skipped: []string{"p.TestB", "p.TestNew"}, Needs: map[string]int{"p.TestNew": 36}}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if got.String() != "2 passed, 1 failed, 2 skipped" {
		t.Errorf("in words: %s", got)
	}
	if _, err := verdict.Read(strings.NewReader("{")); err == nil {
		t.Error("torn events were taken")
	}
}

func TestReadKeepsTheFirstMessagesOfFailedTests(t *testing.T) {
	t.Parallel()
	got, err := verdict.Read(strings.NewReader(`{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:7: pod web: not ready\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"        and more of it\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:7: took 3 s\n"}
{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:7: ` + strings.Repeat("é", 300) + `\n"}
` + strings.Repeat(`{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:8: next\n"}
`, 20) + `{"Action":"pass","Package":"p","Test":"TestB"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p","Test":"TestC"}
`))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a_test.go:7: pod web: not ready"}; !cmp.Equal(got.Messages["p.TestA"], want) || got.Messages["p.TestB"] != nil {
		t.Errorf("messages %q", got.Messages)
	}
	long := got.Messages["p.TestC"]
	if len(long) != 8 || len(long[0]) > 410 || !strings.HasSuffix(long[0], "é…") {
		t.Errorf("%d messages, the first: %q", len(long), long[0])
	}
}

func TestCheckFindsWhatGoTestCallsOK(t *testing.T) {
	t.Parallel()
	expected := map[string]verdict.Expected{
		"chaos": {Required: map[string]int{`\.TestSmallDose$`: 1}, MaySkip: map[string]string{`\.TestSlow$`: "takes an hour"}},
	}
	for name, test := range map[string]struct {
		ran  map[string]verdict.Tests
		want []string // each has to be in the error; none: no error
	}{
		"as expected": {ran: map[string]verdict.Tests{
			"chaos": {Passed: []string{"p.TestSmallDose"}, Skipped: []string{"p.TestSlow"}}, "unit": {Passed: []string{"p.TestA"}},
		}},
		"a step without a test": {
			ran:  map[string]verdict.Tests{"chaos": {Passed: []string{"p.TestSmallDose"}}, "unit": {}},
			want: []string{"unit: no test ran"},
		},
		"a required test renamed": {
			ran:  map[string]verdict.Tests{"chaos": {Passed: []string{"p.TestLittleDose"}}},
			want: []string{"chaos: 0 tests called \\.TestSmallDose$ passed, want at least 1"},
		},
		"a required test skipped": {
			ran:  map[string]verdict.Tests{"chaos": {Passed: []string{"p.TestOther"}, Skipped: []string{"p.TestSmallDose"}}},
			want: []string{"0 tests called", "p.TestSmallDose was skipped"},
		},
		"a skip too many": {
			ran:  map[string]verdict.Tests{"chaos": {Passed: []string{"p.TestSmallDose"}}, "unit": {Passed: []string{"p.TestA"}, Skipped: []string{"p.TestB"}}},
			want: []string{"unit: p.TestB was skipped"},
		},
		"a step left out": {ran: map[string]verdict.Tests{"unit": {Passed: []string{"p.TestA"}}}, want: []string{"chaos: did not run"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := verdict.Check(test.ran, expected)
			if (err == nil) != (len(test.want) == 0) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			for _, words := range test.want {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("got %v, want it to say %q", err, words)
				}
			}
		})
	}
}

func TestATestMayBeSkippedOnAnOlderKubernetesThanItNeeds(t *testing.T) {
	t.Parallel()
	ran := map[string]verdict.Tests{"e2e": {Passed: []string{"p.TestA"}, Skipped: []string{"p.TestNew"}, Needs: map[string]int{"p.TestNew": 36}}}
	for minor, allowed := range map[int]bool{0: false, 31: true, 35: true, 36: false, 37: false} {
		if err := verdict.Check(ran, map[string]verdict.Expected{"e2e": {Kubernetes: minor}}); (err == nil) != allowed {
			t.Errorf("skipped on 1.%d: got %v, want it allowed: %t", minor, err, allowed)
		}
	}
}

package chaos

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestDeckDealsEveryNumberBeforeAnyAgain(t *testing.T) {
	t.Parallel()
	var d deck
	choice := rand.New(rand.NewPCG(1, 2))
	for range 3 {
		seen := map[int]bool{}
		for range 5 {
			seen[d.next(5, choice)] = true
		}
		if len(seen) != 5 {
			t.Errorf("dealt %v, want all five", seen)
		}
	}
}

func TestLoadIsJudgedWithoutACluster(t *testing.T) {
	t.Parallel()
	err := Config{Duration: 5 * time.Second, Rate: 1}.ValidateLoad()
	if err == nil || !strings.Contains(err.Error(), "duration 5s: want at least 1m") || !strings.Contains(err.Error(), "0 pods") {
		t.Errorf("error %v, want both faults", err)
	}
	if err := (Config{Duration: time.Minute, Pods: 1, Rate: 1}).ValidateLoad(); err != nil {
		t.Error(err)
	}
}

func TestAnHourHas240Kills(t *testing.T) {
	t.Parallel()
	for duration, want := range map[time.Duration]int{time.Minute: 4, 10 * time.Minute: 40, time.Hour: 240} {
		if got := (Config{Duration: duration}).kills(); got != want {
			t.Errorf("%s: %d kills, want %d", duration, got, want)
		}
	}
}

package build

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestStatusSaysHowFarTheBuildIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &Progress{Cores: 2}
		want := func(status string) {
			t.Helper()
			if got := p.Status(); got != status {
				t.Errorf("got %q, want %q", got, status)
			}
		}
		write := func(text string) {
			if _, err := p.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		want("downloading modules")
		p.begin(300, 20*time.Minute)
		write("go: downloading example.com/a v1.0.0\nexample.com/a\nexample")
		want("1 of 300 packages, about 10 min left on 2 cores")
		write(".com/b\n")
		for range 98 {
			write("example.com/c\n")
		}
		time.Sleep(time.Minute)
		want("100 of 300 packages, about 2 min left on 2 cores")
		for range 200 {
			write("example.com/d\n")
		}
		want("300 packages compiled, linking")
	})
}

func TestFirstEstimateOnABusyMachine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &Progress{Cores: 2}
		p.begin(270, time.Minute)
		if _, err := p.Write([]byte("example.com/a\nexample.com/b\nexample.com/c\n")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if got, want := p.Status(), "3 of 270 packages, about 15 min left on 2 cores"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

package build

import (
	"bytes"
	"fmt"
	"sync"
	"time"
)

// Progress counts the packages of a build. It is written to by go build -v, which prints the name of each package on a
// line of its own.
type Progress struct {
	// Cores are those that compile at once.
	Cores int

	mu          sync.Mutex
	line        []byte
	began       time.Time
	total, done int
	cpu         time.Duration
}

func (p *Progress) begin(total int, cpu time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.began, p.total, p.cpu = time.Now(), total, cpu
}

// Write counts the lines that are names of packages; what go says else has spaces.
func (p *Progress) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line = append(p.line, text...)
	for {
		line, rest, found := bytes.Cut(p.line, []byte("\n"))
		if !found {
			return len(text), nil
		}
		if len(line) > 0 && !bytes.ContainsAny(line, " \t") {
			p.done++
		}
		p.line = rest
	}
}

// fewest packages are needed for an estimate from them: the first ones are small.
const fewest = 100

// Status says how far the build is and how long it may still take.
func (p *Progress) Status() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.began.IsZero() {
		return "downloading modules"
	}
	took := time.Since(p.began)
	left := p.cpu/time.Duration(p.Cores) - took
	if p.done > 0 {
		atThisRate := took * time.Duration(max(p.total-p.done, 0)) / time.Duration(p.done)
		// Of a few packages only a slow machine can be told.
		if p.done >= fewest || atThisRate > left {
			left = atThisRate
		}
	}
	if p.total <= p.done {
		return fmt.Sprintf("%d packages compiled, linking", p.done)
	}
	return fmt.Sprintf("%d of %d packages, about %s left on %d cores", p.done, p.total, about(left), p.Cores)
}

// about is a duration as exact as an estimate is.
func about(left time.Duration) string {
	if left < 90*time.Second {
		return fmt.Sprintf("%d s", max(int(left.Seconds())/10*10, 10))
	}
	return fmt.Sprintf("%d min", int((left+30*time.Second)/time.Minute))
}

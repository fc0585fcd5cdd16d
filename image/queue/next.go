package queue

import (
	"cmp"
	"slices"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
	"github.com/refit-project/refit/internal/recheck"
)

// sameImage is how long a pull waits for a pull of the same image for another namespace, because it may then have
// nothing to transfer. It does not wait longer, because the other namespace can delay the end.
const sameImage = 30 * time.Second

// slots counts the attempts in progress on a node.
type slots struct {
	parallel int
	all      int
	by       map[string]int // by namespace
}

// free reports whether another pull of a namespace may begin. A namespace leaves one of the slots to others: container
// runtimes have a limit of their own, for example three concurrent downloads with containerd, and pulls that do not end
// would use it up. Each namespace without a pull gets one more slot, up to twice as many slots, so that the pulls of
// several namespaces do not delay others.
func (s slots) free(namespace string) bool {
	return s.all < s.parallel && s.by[namespace] < max(s.parallel-1, 1) || s.by[namespace] == 0 && s.all < 2*s.parallel
}

func (s *slots) take(namespace string) {
	s.all++
	s.by[namespace]++
}

// next decides which pulls start now, and when to run again without a change. The namespace with the fewest pulls in
// progress comes first; of several, the one whose last attempt is longest ago; and within a namespace the oldest
// request.
func next(pulls map[image.Target]*pull, running map[*pull]time.Time, served map[string]uint64, parallel int, now time.Time) (start []*pull, again recheck.At) {
	later := func(t time.Time) { again = again.Or(t) }
	taken := slots{parallel: parallel, by: map[string]int{}}
	same := map[string][]*pull{} // in progress, by full reference
	for p := range running {
		taken.take(p.want.Namespace)
		same[p.full] = append(same[p.full], p)
	}
	var waiting []*pull
	for _, p := range pulls {
		switch {
		case p.state.Phase != v1beta1.ImagePhaseWaiting:
		case now.Before(p.state.notBefore):
			later(p.state.notBefore)
		default:
			waiting = append(waiting, p)
		}
	}
	for len(waiting) > 0 && taken.all < 2*parallel {
		p := slices.MinFunc(waiting, func(a, b *pull) int {
			return cmp.Or(cmp.Compare(taken.by[a.want.Namespace], taken.by[b.want.Namespace]),
				cmp.Compare(served[a.want.Namespace], served[b.want.Namespace]), before(a, b))
		})
		free := taken.free(p.want.Namespace)
		waiting = slices.DeleteFunc(waiting, func(other *pull) bool { return other == p || !free && other.want.Namespace == p.want.Namespace })
		if !free {
			continue
		}
		if until := waits(p, same[p.full], running, now); now.Before(until) {
			if until != never {
				later(until)
			}
			continue
		}
		taken.take(p.want.Namespace)
		same[p.full] = append(same[p.full], p)
		start = append(start, p)
	}
	return start, again
}

// never is later than any other time. It means to wait for the end of another pull.
var never = time.Unix(1<<40, 0)

// waits returns until when a pull waits for pulls of the same image. For pulls of its own namespace it waits until they
// have ended.
func waits(p *pull, same []*pull, running map[*pull]time.Time, now time.Time) (until time.Time) {
	for _, other := range same {
		if other.want.Namespace == p.want.Namespace {
			return never
		}
		began, ok := running[other]
		if !ok { // it starts now as well
			began = now
		}
		if end := began.Add(sameImage); end.After(until) {
			until = end
		}
	}
	return until
}

// before compares pulls of namespaces with equal turns: retries last, older requests first.
func before(a, b *pull) int {
	return cmp.Or(
		cmp.Compare(min(a.state.attempts, 1), min(b.state.attempts, 1)), a.want.CreatedAt.Compare(b.want.CreatedAt),
		cmp.Compare(a.want.Repository, b.want.Repository), cmp.Compare(a.want.Tag, b.want.Tag), cmp.Compare(a.want.Namespace, b.want.Namespace),
	)
}

package callers

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
)

const (
	// publishedWithin is how long kubelet may take to report the address of a pod whose containers have started: it lists
	// the containers every second, and then writes the status. The timeout of the webhooks is 5 s.
	publishedWithin = 2 * time.Second
	// keptFor is how long the address of a pod that has been deleted still counts as its address. After a deletion with
	// --force its containers run on for their grace period.
	keptFor = 10 * time.Minute
	// maxKept and maxNewcomers limit the addresses of deleted pods, and the ones without a pod. The oldest are dropped.
	maxKept, maxNewcomers = 10_000, 1_000
)

// pods has the addresses of all pods. An entry takes about 150 bytes.
type pods struct {
	allowed []string // namespaces

	mu        sync.Mutex
	claims    map[netip.Addr]claim
	kept      []kept // of deleted pods, the oldest first
	newcomers map[netip.Addr]*newcomer
}

// claim is the pod that has an address.
type claim struct {
	pod     types.NamespacedName
	created int64 // Unix time
	until   int64 // Unix time at which the address of a deleted pod is dropped; 0 for an existing pod
	exempt  bool
	logged  bool
}

// kept is the address of a deleted pod, with until of its claim.
type kept struct {
	address netip.Addr
	until   int64
}

// newcomer is an address without a pod that has called.
type newcomer struct {
	until, last time.Time
	claimed     chan struct{} // closed when a pod has the address
}

// finding is what is known about an address.
type finding struct {
	pod, exempt bool
	wait        time.Duration // until the API server would know the pod; 0 if the address has had no pod for so long
	claimed     <-chan struct{}
}

func newPods(allowed []string) *pods {
	return &pods{allowed: allowed, claims: map[netip.Addr]claim{}, newcomers: map[netip.Addr]*newcomer{}}
}

// find returns what is known about an address, which calls now.
func (p *pods) find(address netip.Addr) finding {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.drop(now)
	if c, ok := p.claims[address]; ok {
		return finding{pod: true, exempt: c.exempt}
	}
	n := p.newcomers[address]
	if n == nil {
		p.makeRoom()
		n = &newcomer{until: now.Add(publishedWithin), claimed: make(chan struct{})}
		p.newcomers[address] = n
	}
	n.last = now
	return finding{wait: max(n.until.Sub(now), 0), claimed: n.claimed}
}

// refused returns the pod that has an address, and whether it is refused for the first time.
func (p *pods) refused(address netip.Addr) (pod types.NamespacedName, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, ok := p.claims[address]
	if !ok {
		return c.pod, false
	}
	first, c.logged = !c.logged, true
	p.claims[address] = c
	return c.pod, first
}

// set is called with a pod that exists.
func (p *pods) set(object any) {
	if pod, ok := object.(*corev1.Pod); ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.claim(pod, addresses(pod))
	}
}

// update is called with a pod that has changed. It has another address if its sandbox was created again.
func (p *pods) update(before, after any) {
	was, wasPod := before.(*corev1.Pod)
	is, isPod := after.(*corev1.Pod)
	if !wasPod || !isPod {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := addresses(is)
	p.release(was, slices.DeleteFunc(addresses(was), func(a netip.Addr) bool { return slices.Contains(now, a) }))
	p.claim(is, now)
}

// remove is called with a pod that does not exist any more.
func (p *pods) remove(object any) {
	if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	if pod, ok := object.(*corev1.Pod); ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.release(pod, addresses(pod))
	}
}

// addresses returns the addresses of a pod. A pod that has ended has none: its address may belong to another one.
func addresses(pod *corev1.Pod) []netip.Addr {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	var all []netip.Addr
	for _, ip := range append([]corev1.PodIP{{IP: pod.Status.PodIP}}, pod.Status.PodIPs...) {
		if address, err := netip.ParseAddr(ip.IP); err == nil && !slices.Contains(all, address.Unmap()) {
			all = append(all, address.Unmap())
		}
	}
	return all
}

// claim records the addresses of a pod. Two pods have the same one if the first has ended and is not deleted yet, or if the
// kubelet of a node writes a wrong one: an exempt pod has precedence, then the newer pod.
func (p *pods) claim(pod *corev1.Pod, addresses []netip.Addr) {
	is := claim{
		pod: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, created: pod.CreationTimestamp.Unix(),
		exempt: pod.Spec.HostNetwork || slices.Contains(p.allowed, pod.Namespace),
	}
	for _, address := range addresses {
		was, ok := p.claims[address]
		switch {
		case !ok || was.until > 0:
		case was.pod == is.pod:
			is.logged = was.logged
		case was.exempt && !is.exempt, was.exempt == is.exempt && was.created > is.created:
			continue
		}
		p.claims[address] = is
		if n := p.newcomers[address]; n != nil {
			close(n.claimed)
			delete(p.newcomers, address)
		}
	}
}

// release records that a pod no longer has the addresses.
func (p *pods) release(pod *corev1.Pod, addresses []netip.Addr) {
	now := time.Now()
	for _, address := range addresses {
		c, ok := p.claims[address]
		switch {
		case !ok || c.until > 0 || c.pod != (types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}):
		case c.exempt:
			delete(p.claims, address)
		default:
			c.until = now.Add(keptFor).Unix()
			p.claims[address] = c
			p.kept = append(p.kept, kept{address, c.until})
		}
	}
	p.drop(now)
}

// drop forgets the addresses of pods that were deleted long ago, or of the oldest ones if there are many.
func (p *pods) drop(now time.Time) {
	for len(p.kept) > 0 && (p.kept[0].until <= now.Unix() || len(p.kept) > maxKept) {
		if oldest := p.kept[0]; p.claims[oldest.address].until == oldest.until {
			delete(p.claims, oldest.address)
		}
		p.kept = p.kept[1:]
	}
}

// makeRoom drops the newcomer that has not called for the longest time, if there are many.
func (p *pods) makeRoom() {
	if len(p.newcomers) < maxNewcomers {
		return
	}
	var oldest netip.Addr
	for address, n := range p.newcomers {
		if !oldest.IsValid() || n.last.Before(p.newcomers[oldest].last) {
			oldest = address
		}
	}
	delete(p.newcomers, oldest)
}

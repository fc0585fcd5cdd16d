package queue

import (
	"testing"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
)

func pullFor(namespace, full string, change ...func(*pull)) *pull {
	p := &pull{full: full}
	p.want.Namespace, p.want.Repository = namespace, full
	p.state.Phase = v1beta1.ImagePhaseWaiting
	for _, c := range change {
		c(p)
	}
	return p
}

// What a namespace may pull, another one must not find on the node without asking the registry.
func TestAnImageThatIsThereByASecretOfAnotherNamespaceIsPrivate(t *testing.T) {
	t.Parallel()
	withSecret := func(p *pull) { p.state.WithSecret = true }
	pulling := func(p *pull) { p.state.Phase = v1beta1.ImagePhasePulling }
	secrets := func(p *pull) { p.want.Secrets = []v1beta1.ReferenceObject{{Name: "s"}} }
	for name, tt := range map[string]struct {
		own, other *pull
		want       bool
	}{
		"it was pulled with a secret":                   {pullFor("shop", "game"), pullFor("bar", "game", withSecret), true},
		"and by its own namespace with one":             {pullFor("shop", "game", withSecret), pullFor("bar", "game", withSecret), false},
		"another image was":                             {pullFor("shop", "game"), pullFor("bar", "other", withSecret), false},
		"its own namespace has done so by another name": {pullFor("shop", "game"), pullFor("shop", "game", withSecret), false},
		"it is being pulled, maybe with a secret":       {pullFor("shop", "game"), pullFor("bar", "game", pulling, secrets), true},
		"it is being pulled without any":                {pullFor("shop", "game"), pullFor("bar", "game", pulling), false},
		"by its tag, and this one is a digest":          {pullFor("shop", "r.test/game@sha256:1"), pullFor("bar", "r.test/game:v1", withSecret), true},
		"by another digest, and this one is one":        {pullFor("shop", "r.test/game@sha256:1"), pullFor("bar", "r.test/game@sha256:2", withSecret), true},
		"another repository was, and this is a digest":  {pullFor("shop", "r.test/game@sha256:1"), pullFor("bar", "r.test/game2:v1", withSecret), false},
		"by another tag":                                {pullFor("shop", "r.test/game:v2"), pullFor("bar", "r.test/game:v1", withSecret), false},
		"it is to be pulled":                            {pullFor("shop", "game"), pullFor("bar", "game", secrets), false},
	} {
		pulls := map[image.Target]*pull{{Namespace: "a"}: tt.own, {Namespace: "b"}: tt.other}
		if got := private(pulls, nil, tt.own, time.Time{}); got != tt.want {
			t.Errorf("%s: private %t", name, got)
		}
	}
}

// Container runtimes have a limit of their own: a namespace leaves one of the slots to others, and others have a few more.
func TestHowManyPullsMayBeUnderWay(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		parallel, own, others int
		want                  bool
	}{
		"the first":                              {3, 0, 0, true},
		"the last of its own":                    {3, 1, 0, true},
		"one more of its own":                    {3, 2, 0, false},
		"the last in all":                        {3, 1, 1, true},
		"beyond the limit, of one that has some": {3, 1, 2, false},
		"beyond the limit, of one that has none": {3, 0, 3, true},
		"beyond twice the limit":                 {3, 0, 6, false},
		"the last of twice the limit":            {3, 0, 5, true},
		"one at a time":                          {1, 0, 0, true},
		"one at a time, and another namespace's": {1, 0, 1, true},
		"one at a time, and its own":             {1, 1, 0, false},
	} {
		s := slots{parallel: tt.parallel, all: tt.own + tt.others, by: map[string]int{"shop": tt.own, "bar": tt.others}}
		if got := s.free("shop"); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A timer is all that wakes the queue for a retry.
func TestTheQueueLooksAgainAtTheFirstOfSeveralRetries(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	after := func(wait time.Duration) func(*pull) { return func(p *pull) { p.state.notBefore = now.Add(wait) } }
	pulls := map[image.Target]*pull{
		{Namespace: "a"}: pullFor("a", "x", after(3*time.Second)), {Namespace: "b"}: pullFor("b", "y", after(time.Second)),
		{Namespace: "c"}: pullFor("c", "z", after(2*time.Second)), {Namespace: "d"}: pullFor("d", "due", after(0)),
	}
	start, again := next(pulls, nil, map[string]uint64{}, 3, now)
	if len(start) != 1 || start[0].full != "due" || !again.Equal(now.Add(time.Second)) {
		t.Errorf("%d start, again at %s", len(start), again)
	}
}

// The layers are on the node when the first of them has ended, unless that takes long.
func TestPullsOfOneImageFollowEachOther(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	first, second, own := pullFor("a", "x"), pullFor("b", "x"), pullFor("a", "x")
	second.want.Repository = "y"
	pulls := map[image.Target]*pull{{Namespace: "a"}: first, {Namespace: "b"}: second}
	start, again := next(pulls, nil, map[string]uint64{}, 3, now)
	if len(start) != 1 || start[0] != first || !again.Equal(now.Add(sameImage)) {
		t.Errorf("%d start, again at %s", len(start), again)
	}
	first.state.Phase = v1beta1.ImagePhasePulling
	running := map[*pull]time.Time{first: now.Add(-sameImage)}
	if start, _ := next(pulls, running, map[string]uint64{}, 3, now); len(start) != 1 || start[0] != second {
		t.Errorf("%d start when the first takes long", len(start))
	}
	pulls = map[image.Target]*pull{{Namespace: "a"}: first, {Namespace: "a", Reference: image.Reference{Tag: "other"}}: own}
	if start, again := next(pulls, running, map[string]uint64{}, 3, now); len(start) != 0 || !again.IsZero() {
		t.Errorf("%d of the same namespace start, again at %s", len(start), again)
	}
}

package queue

import (
	"strings"
	"time"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image"
)

const (
	// rememberPrivate is how long a removed pull with a secret counts for other namespaces. refit-manager removes pulls before
	// their jobs have ended if their namespace has many.
	rememberPrivate = 24 * time.Hour
	// maxPrivate limits the number of removed pulls that are remembered.
	maxPrivate = 1024
)

// source is an image, by its full reference, that was pulled with a secret of a namespace.
type source struct{ full, namespace string }

// remember records a pull that is removed, if it was pulled with a secret. The record is lost when the program ends.
func (q *Queue) remember(p *pull, now time.Time) {
	if !p.state.WithSecret {
		return
	}
	q.secret[source{p.full, p.want.Namespace}] = now
	oldest, at := source{}, now
	for s, removed := range q.secret {
		if now.Sub(removed) >= rememberPrivate {
			delete(q.secret, s)
		} else if removed.Before(at) {
			oldest, at = s, removed
		}
	}
	if len(q.secret) > maxPrivate {
		delete(q.secret, oldest)
	}
}

// unwantedPulled records that an attempt has succeeded with a secret although it was cancelled: the node has the image.
func (q *Queue) unwantedPulled(p *pull, now time.Time) {
	p.state.WithSecret = true
	q.remember(p, now)
	if wanted := q.pulls[p.want.Target]; wanted != nil { // another version
		wanted.state.WithSecret = true
		q.changed()
	}
}

// private reports whether, as far as known, the node got the image only with a secret of another namespace. Then its
// presence does not show that the secrets of this namespace may pull it.
func private(pulls map[image.Target]*pull, removed map[source]time.Time, p *pull, now time.Time) bool {
	if at, ok := removed[source{p.full, p.want.Namespace}]; p.state.WithSecret || ok && now.Sub(at) < rememberPrivate {
		return false
	}
	for _, other := range pulls {
		if !mayBe(p.full, other.full) || other.want.Namespace == p.want.Namespace {
			continue
		}
		if other.state.WithSecret || other.state.Phase == v1beta1.ImagePhasePulling && len(other.want.Secrets) > 0 {
			return true
		}
	}
	for s, at := range removed {
		if mayBe(p.full, s.full) && now.Sub(at) < rememberPrivate {
			return true
		}
	}
	return false
}

// mayBe reports whether a pull of the reference pulled may have given the node the image with this name. A runtime finds an image that was
// pulled by a tag by its digest as well.
func mayBe(name, pulled string) bool {
	repository, _, byDigest := strings.Cut(name, "@")
	return name == pulled || byDigest && (strings.HasPrefix(pulled, repository+":") || strings.HasPrefix(pulled, repository+"@"))
}

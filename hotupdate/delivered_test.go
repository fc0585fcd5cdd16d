package hotupdate_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/refit-project/refit/hotupdate"
	"github.com/refit-project/refit/hotupdate/action"
)

// brought returns a request of a trigger with all of its content.
func brought(version, digest string, set files) hotupdate.Request {
	request := inline(version, set)
	request.Keep = true
	request.Trigger, request.TriggerDigest = "configmap shop/web", digest
	return request
}

func TestFilesThatATriggerNoLongerBringsAreRemoved(t *testing.T) {
	t.Parallel()
	b := newBench(t, files{"own": "image"}, nil)
	b.apply(t, brought("v1", "digest-1", files{"a": "1", "b": "1", "changed": "1"}))
	byHand := inline("v2", files{"c": "by hand", "changed": "by hand"})
	byHand.Keep = true
	b.apply(t, byHand)
	b.apply(t, brought("v3", "digest-2", files{"a": "2"}))
	b.check(t, files{"own": "image", "a": "2", "c": "by hand", "changed": "by hand"})
	got := b.Delivered("configmap shop/web")
	if got.Digest != "digest-2" || len(got.Files) != 1 || got.Files["a"] == "" {
		t.Errorf("recorded %+v", got)
	}
	if got := b.Delivered("configmap shop/other"); got.Digest != "" {
		t.Errorf("recorded of another trigger: %+v", got)
	}
}

func TestContentOfATriggerIsRememberedAlthoughItChangesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, nil)
	b.apply(t, brought("v1", "digest-1", files{"a": "1"}))
	b.apply(t, brought("v1", "digest-2", files{"a": "1"}))
	if got := b.Delivered("configmap shop/web").Digest; got != "digest-2" {
		t.Errorf("recorded %s", got)
	}
	b.Close()
	b.open(t, nil)
	if got := b.Delivered("configmap shop/web"); got.Digest != "digest-2" || len(got.Files) != 1 {
		t.Errorf("after a restart: %+v", got)
	}
}

// A requested revision that could not be restored is still wanted after an update by a trigger: otherwise the pod would
// keep an earlier revision because a ConfigMap has changed.
func TestContentOfATriggerLeavesAProvisionalRevisionProvisional(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, nil)
	request := inline("v1", files{"a": "1"})
	request.Provisional = true
	b.apply(t, request)
	b.apply(t, brought("v2", "digest-1", files{"b": "1"}))
	if !b.Provisional() {
		t.Error("final after the content of a trigger")
	}
	b.apply(t, inline("v3", files{"a": "3"}))
	if b.Provisional() {
		t.Error("provisional after an update that was requested")
	}
}

func TestContentThatIsRolledBackIsNotRecorded(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, func(c *hotupdate.Config) {
		c.Reload = []action.Action{{Name: "reload", Step: step(func(_ context.Context, r action.Release) error {
			if r.Version == "bad" {
				return errors.New("refused")
			}
			return nil
		})}}
	})
	b.apply(t, brought("v1", "digest-1", files{"a": "1"}))
	if _, err := b.Apply(t.Context(), brought("bad", "digest-2", files{"a": "2"})); err == nil {
		t.Fatal("the update succeeded")
	}
	b.check(t, files{"a": "1"})
	if got := b.Delivered("configmap shop/web").Digest; got != "digest-1" {
		t.Errorf("recorded %s", got)
	}
}

// A roll back puts earlier content of a trigger in force. Keys that the source no longer has still disappear with the next
// change, also if their content is not the content of the last delivery.
func TestFilesOfATriggerThatARollbackBroughtBackAreRemoved(t *testing.T) {
	t.Parallel()
	b := newBench(t, files{"own": "image"}, nil)
	b.apply(t, brought("v1", "digest-1", files{"a": "1", "changed": "1", "deleted": "1"}))
	b.apply(t, brought("v2", "digest-2", files{"a": "1", "changed": "2"}))
	if _, err := b.Rollback(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	b.check(t, files{"own": "image", "a": "1", "changed": "1", "deleted": "1"})
	b.apply(t, brought("v3", "digest-3", files{"a": "3"}))
	b.check(t, files{"own": "image", "a": "3"})
}

// A request may have the same content as an earlier delivery: it stays, because it does not come from the trigger.
func TestARequestedFileStaysThoughATriggerHasHadItsContent(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, nil)
	b.apply(t, brought("v1", "digest-1", files{"a": "1", "b": "1"}))
	b.apply(t, brought("v2", "digest-2", files{"a": "1", "b": "2"}))
	byHand := inline("v3", files{"b": "1"})
	byHand.Keep = true
	b.apply(t, byHand)
	b.apply(t, brought("v4", "digest-3", files{"a": "2"}))
	b.check(t, files{"a": "2", "b": "1"})
}

// A request for the revision in force makes it the wanted one, also if nothing has to be fetched: else every restart of the
// sidecar would need the API server to read the record.
func TestARequestForAProvisionalRevisionMakesItFinal(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, nil)
	request := inline("v1", files{"a": "1"})
	sum := sha256.Sum256([]byte("1"))
	request.Sources[0].SHA256 = hex.EncodeToString(sum[:])
	request.Provisional = true
	b.apply(t, request)
	request.Provisional, request.DryRun = false, true
	b.apply(t, request)
	if !b.Provisional() {
		t.Error("final after a dry run")
	}
	request.DryRun = false
	b.apply(t, request)
	if b.Provisional() {
		t.Error("provisional after the same revision was requested")
	}
}

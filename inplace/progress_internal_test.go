package inplace

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/inplace/record"
)

// A record of OpenKruise's has whole seconds: the metadata may have been written up to a second later.
func TestRestartForMetadataOfWhichOnlyTheSecondIsKnownWaitsForTheWholeSecond(t *testing.T) {
	t.Parallel()
	written := time.Unix(1e9, 0)
	state := v1beta1.InPlaceUpdateState{ContainerBatchesRecord: []v1beta1.InPlaceUpdateContainerBatch{{Timestamp: metav1.NewTime(written), Containers: []string{"app"}}}}
	v := &view{record: &record.Record{State: state}}
	if got, want := v.metadataObserved("app"), written.Add(time.Second+metadataDelay); !got.Equal(want) {
		t.Errorf("without the time of the write: %s, want %s", got, want)
	}
	at := written.Add(300 * time.Millisecond)
	v.record.State.Refit = &v1beta1.InPlaceUpdateExtension{Written: &metav1.MicroTime{Time: at}}
	if got, want := v.metadataObserved("app"), at.Add(metadataDelay); !got.Equal(want) {
		t.Errorf("with it: %s, want %s", got, want)
	}
	next := metav1.NewTime(written.Add(time.Minute)) // by OpenKruise, which does not know the other time
	batches := []v1beta1.InPlaceUpdateContainerBatch{{Timestamp: next, Containers: []string{"app"}}, {Timestamp: metav1.NewTime(next.Add(time.Minute)), Containers: []string{"log"}}}
	v.record.State.ContainerBatchesRecord = append(batches, v.record.State.ContainerBatchesRecord...)
	if got, want := v.metadataObserved("app"), next.Add(time.Second+metadataDelay); !got.Equal(want) {
		t.Errorf("written again: %s, want %s", got, want)
	}
}

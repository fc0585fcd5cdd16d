package jobplan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/image/jobplan"
)

// The outcome of the version that a job requested counts for it, if the node's daemon distinguishes versions of namespaces.
func TestWhichOutcomeOfANodeCountsForAJob(t *testing.T) {
	t.Parallel()
	const succeeded, failed, pulling, waiting = v1beta1.ImagePhaseSucceeded, v1beta1.ImagePhaseFailed, v1beta1.ImagePhasePulling, v1beta1.ImagePhaseWaiting
	// inAll is what a kruise-daemon says, and what OpenKruise's CRD keeps.
	inAll := func(version int64, phase v1beta1.ImagePullPhase) *v1beta1.ImageTagStatus {
		return &v1beta1.ImageTagStatus{Tag: "v1", Version: version, Phase: phase}
	}
	inNamespace := func(version int64, phase v1beta1.ImagePullPhase, jobs ...v1beta1.ImageJobStatus) *v1beta1.ImageTagStatus {
		return &v1beta1.ImageTagStatus{Tag: "v1", Version: 9, Phase: pulling, Namespaces: []v1beta1.ImageNamespaceStatus{
			{Namespace: "shop", Version: version, Phase: phase, Jobs: jobs},
		}}
	}
	earlier := func(version int64, phase v1beta1.ImagePullPhase) v1beta1.ImageJobStatus {
		return v1beta1.ImageJobStatus{UID: job().UID, Version: version, Phase: phase}
	}
	ofAnother := v1beta1.ImageJobStatus{UID: "another", Version: 9, Phase: failed}
	for name, tt := range map[string]struct {
		said *v1beta1.ImageTagStatus // for a job that requested version 2, while 4 is the version of its namespace and 7 the version of the tag
		want v1beta1.ImagePullPhase
	}{
		"nothing is said":                        {nil, waiting},
		"a kruise-daemon has pulled the tag":     {inAll(7, succeeded), succeeded},
		"a kruise-daemon has not":                {inAll(7, failed), failed},
		"a kruise-daemon pulled another version": {inAll(4, succeeded), waiting},
		"a kruise-daemon pulls it":               {inAll(7, pulling), waiting},
		"the version has been pulled":            {inNamespace(4, succeeded), succeeded},
		"the version has failed":                 {inNamespace(4, failed), failed},
		"it is being pulled":                     {inNamespace(4, pulling), waiting},
		"it is not there yet":                    {inNamespace(4, waiting), waiting},
		"exactly what it asked for":              {inNamespace(2, failed), failed},
		"one in between":                         {inNamespace(3, succeeded), succeeded},
		"an older one":                           {inNamespace(1, failed), waiting},
		"its own has been kept":                  {inNamespace(4, pulling, ofAnother, earlier(2, failed)), failed},
		"an older one has been kept":             {inNamespace(4, pulling, earlier(1, failed)), waiting},
		"the outcome of another job was kept":    {inNamespace(4, pulling, ofAnother), waiting},
	} {
		j := job()
		node := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "node-0"}}
		node.Spec.Images = map[string]v1beta1.ImageSpec{"game": {Tags: []v1beta1.ImageTagSpec{{
			Tag: "v1", Version: 7, OwnerReferences: []corev1.ObjectReference{{Namespace: "shop", Name: "j", UID: j.UID}},
			Namespaces: []v1beta1.ImageNamespaceSpec{{
				Namespace: "shop", Version: 4, Jobs: []v1beta1.ImageJobVersion{{UID: "another", Version: 4}, {UID: j.UID, Version: 2}},
			}},
		}}}}
		if tt.said != nil {
			node.Status.ImageStatuses = map[string]v1beta1.ImageStatus{"game": {Tags: []v1beta1.ImageTagStatus{*tt.said}}}
		}
		got := jobplan.Job(j, []*v1beta1.NodeImage{node}, now).Status
		is := map[v1beta1.ImagePullPhase]bool{succeeded: got.Succeeded == 1, failed: got.Failed == 1, waiting: got.Active == 1 && got.Succeeded+got.Failed == 0}
		if !is[tt.want] {
			t.Errorf("%s: %d succeeded, %d failed, %d active; want %s", name, got.Succeeded, got.Failed, got.Active, tt.want)
		}
	}
}

// Others may have written an entry without the time of its creation: nothing is late then.
func TestAnEntryWithoutATimeIsWaitedFor(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, job())
	c.look()
	tag := &c.nodes[0].Spec.Images["game"].Tags[0]
	tag.Namespaces[0].CreatedAt = nil
	c.now = c.now.Add(24 * time.Hour)
	if d := c.look(); d.Status.Failed != 0 || d.Status.Active != 1 {
		t.Errorf("%+v", d.Status)
	}
}

// Its user sees why nothing happens there, and what would help.
func TestANodeWithoutRoomIsNamedAndNotStarted(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, job())
	full := c.nodes[1]
	full.Spec.Images = map[string]v1beta1.ImageSpec{}
	for i := range v1beta1.MaxNodeImages {
		full.Spec.Images[fmt.Sprintf("app%d", i)] = v1beta1.ImageSpec{Tags: []v1beta1.ImageTagSpec{{Tag: "v1"}}}
	}
	d := c.look()
	if len(d.Start) != 1 || d.Start[0] != "node-0" || !strings.Contains(d.Full, "1 of 2 nodes wait") || !strings.Contains(d.Full, "NodeImage node-1 has 256 images") {
		t.Errorf("%v start, %q", d.Start, d.Full)
	}
	if !strings.HasSuffix(d.Status.Message, d.Full) {
		t.Errorf("message %q", d.Status.Message)
	}
	c.answer(v1beta1.ImagePhaseFailed, "404")
	if d := c.look(); !strings.Contains(d.Status.Message, "NodeImage node-1") || !strings.Contains(d.Status.Message, "404") {
		t.Errorf("message %q", d.Status.Message)
	}
}

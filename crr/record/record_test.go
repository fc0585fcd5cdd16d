package record_test

import (
	"testing"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/crr"
	"github.com/refit-project/refit/crr/record"
)

func TestInstancesThatTheCRDDropsAreRecorded(t *testing.T) {
	t.Parallel()
	states := func(ids ...string) crr.Status {
		var status crr.Status
		for i, id := range ids {
			status.ContainerRecreateStates = append(status.ContainerRecreateStates,
				v1beta1.ContainerRecreateRequestRecreateState{Name: []string{"app", "log"}[i], ContainerID: id})
		}
		return status
	}
	for name, tt := range map[string]struct {
		annotation      string
		stored, written crr.Status
		want            string // of the annotation; empty: none is needed
	}{
		"the CRD has the field":             {stored: states("c://1", "c://2"), written: states("c://1", "c://2")},
		"nothing is to be recorded":         {stored: states("", ""), written: states("", "")},
		"the CRD has no such field":         {stored: states("", ""), written: states("c://1", ""), want: `{"app":"c://1"}`},
		"recorded":                          {annotation: `{"app":"c://1"}`, stored: states("", ""), written: states("c://1", "")},
		"the second container":              {annotation: `{"app":"c://1"}`, stored: states("", ""), written: states("c://1", "c://2"), want: `{"app":"c://1","log":"c://2"}`},
		"the annotation is malformed":       {annotation: `nonsense`, stored: states(""), written: states("c://1"), want: `{"app":"c://1"}`},
		"the annotation is of another type": {annotation: `["c://1"]`, stored: states(""), written: states("c://1"), want: `{"app":"c://1"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := &crr.Request{Status: tt.stored}
			if tt.annotation != "" {
				request.Annotations = map[string]string{v1beta1.AnnotationInstances: tt.annotation}
			}
			for range 2 { // also after the IDs have been put back
				got, missing := record.Missing(request, tt.written)
				if got != tt.want || missing != (tt.want != "") {
					t.Errorf("record %q, %v; want %q", got, missing, tt.want)
				}
				request = record.Apply(request)
			}
		})
	}
}

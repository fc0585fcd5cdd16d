package crd_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// printed returns what kubectl get --output=wide prints of an object, by the names of the columns.
func printed(t *testing.T, columns []apiextensionsv1.CustomResourceColumnDefinition, object string) map[string]string {
	t.Helper()
	of := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(object), &of.Object); err != nil {
		t.Fatal(err)
	}
	convertor, err := tableconvertor.New(columns)
	if err != nil {
		t.Fatal(err)
	}
	table, err := convertor.ConvertToTable(t.Context(), of, nil)
	if err != nil {
		t.Fatal(err)
	}
	cells := map[string]string{}
	for i, column := range table.ColumnDefinitions {
		if cell := table.Rows[0].Cells[i]; cell != nil {
			cells[strings.ToUpper(column.Name)] = fmt.Sprint(cell)
		}
	}
	return cells
}

// versions returns the versions of a CRD.
func versions(t *testing.T, file string) []apiextensionsv1.CustomResourceDefinitionVersion {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &crd); err != nil {
		t.Fatal(err)
	}
	return crd.Spec.Versions
}

// kubectl get shows what has failed. The API server prints the first value of a column.
func TestFailuresAreInTheColumnsOfKubectlGet(t *testing.T) {
	t.Parallel()
	for file, tc := range map[string]struct {
		object string
		want   map[string]string
	}{
		"apps.kruise.io_nodepodprobes.yaml": {`
metadata: {name: node-1}
status:
  podProbeStatuses:
  - probeStates: [{name: web#idle, state: Succeeded}]
  - probeStates: [{name: db#idle, state: Succeeded}, {name: db#primary, state: Failed, message: not the primary}]
  conditions: [{type: Delayed, status: "True", message: exec probes take 3 times their periods}]
`, map[string]string{"NAME": "node-1", "DELAYED": "True", "FAILED": "db#primary", "MESSAGE": "not the primary", "DELAY": "exec probes take 3 times their periods"}},
		"apps.kruise.io_imagelistpulljobs.yaml": {`
metadata: {name: shop}
status: {desired: 3, active: 0, completed: 3, succeeded: 2, message: the namespace has no such Secret, failedImageStatuses: [{imagePullJob: shop-x, name: "app:7", message: not found}]}
`, map[string]string{
			"NAME": "shop", "TOTAL": "3", "ACTIVE": "0", "COMPLETED": "3", "SUCCEED": "2", "FAILED": "app:7", "REASON": "not found", "MESSAGE": "the namespace has no such Secret",
		}},
	} {
		for _, version := range versions(t, file) {
			cells := printed(t, version.AdditionalPrinterColumns, tc.object)
			delete(cells, "AGE")
			if fmt.Sprint(cells) != fmt.Sprint(tc.want) {
				t.Errorf("%s %s:\n got %v\nwant %v", file, version.Name, cells, tc.want)
			}
		}
	}
}

// A list without --output=wide says what a schedule restarts, and that pods of a SidecarSet need somebody.
func TestColumnsWithoutWide(t *testing.T) {
	t.Parallel()
	for file, tc := range map[string]struct {
		object string
		want   map[string]string
	}{
		"refit.dev_restartschedules.yaml": {"spec: {rolloutTemplate: {spec: {targetRef: {kind: Deployment, name: web}}}}", map[string]string{"KIND": "Deployment", "TARGET": "web"}},
		"apps.kruise.io_sidecarsets.yaml": {"status: {failedPods: 2, notUpgradablePods: 3}", map[string]string{"FAILED": "2", "NOT-UPGRADABLE": "3"}},
	} {
		for _, version := range versions(t, file) {
			narrow := slices.DeleteFunc(version.AdditionalPrinterColumns, func(c apiextensionsv1.CustomResourceColumnDefinition) bool { return c.Priority > 0 })
			cells := printed(t, narrow, "metadata: {name: x}\n"+tc.object)
			for column, want := range tc.want {
				if cells[column] != want {
					t.Errorf("%s %s: %s is %q, want %s", file, version.Name, column, cells[column], want)
				}
			}
		}
	}
}

package e2e_test

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/api/v1beta1"
)

func TestSidecarSetsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.sidecarSet("log", "containers: [{name: log, "+sleeper+"}]")
	const c = "containers: [{name: a, image: a}]"
	for name, tc := range map[string]struct {
		spec  string
		words []string
	}{
		"nothing to inject":        {"updateStrategy: {}", []string{"at least one of containers, initContainers and patchContainers"}},
		"unknown type":             {c + ", updateStrategy: {type: Sometimes}", []string{"spec.updateStrategy.type", "Unsupported value"}},
		"unknown patchPolicy":      {c + ", patchPodMetadata: [{annotations: {a: b}, patchPolicy: Maybe}]", []string{"patchPolicy", "Unsupported value"}},
		"unknown upgradeType":      {"containers: [{name: a, image: a, upgradeStrategy: {upgradeType: Warm}}]", []string{"upgradeType", "Unsupported value"}},
		"no empty image":           {"containers: [{name: a, image: a, upgradeStrategy: {upgradeType: HotUpgrade}}]", []string{"spec.containers[0].upgradeStrategy", "hotUpgradeEmptyImage is required"}},
		"the empty image":          {"containers: [{name: a, image: e, upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: e}}]", []string{"spec.containers[0].upgradeStrategy.hotUpgradeEmptyImage", "must be another image than image"}},
		"a container twice":        {"containers: [{name: a, image: a}, {name: a, image: a}]", []string{"spec.containers[1]", "Duplicate"}},
		"twin":                     {"containers: [{name: a, image: a, upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: e}}, {name: a-1, image: a}]", []string{"spec.containers[1].name", "Duplicate"}},
		"selector and partition":   {c + ", updateStrategy: {partition: 3, selector: {matchLabels: {a: b}}}", []string{"only one of selector and partition"}},
		"negative partition":       {c + ", updateStrategy: {partition: -1}", []string{"spec.updateStrategy.partition"}},
		"percentage above 100":     {c + ", updateStrategy: {maxUnavailable: 101%}", []string{"spec.updateStrategy.maxUnavailable"}},
		"resources twice":          {"containers: [{name: a, image: a, resources: {limits: {cpu: 1}}, resourcesPolicy: {targetContainersMode: sum, resourcesExpr: {limits: {cpu: cpu}}}}]", []string{"only one of resources and resourcesPolicy"}},
		"expression":               {"containers: [{name: a, image: a, resourcesPolicy: {targetContainersMode: sum, resourcesExpr: {limits: {cpu: 'cpu+'}}}}]", []string{"resourcesExpr.limits.cpu", "end of the expression"}},
		"unknown volume":           {"containers: [{name: a, image: a, volumeMounts: [{name: v, mountPath: /v}]}]", []string{"spec.containers[0].volumeMounts[0].name", "Not found"}},
		"container of another one": {"containers: [{name: log, image: a}]", []string{"spec.containers[0].name", "which can select the same pods"}},
		"field of the pod":         {"containers: [{name: a, image: a, transferEnv: [{envName: A, sourceContainerNameFrom: {fieldRef: {fieldPath: metadata.name}}}]}]", []string{"fieldPath"}},
		"a port":                   {"containers: [{name: a, image: a, ports: [{containerPort: http}]}]", []string{"spec.containers.ports.containerPort: Invalid value", "must be of type int32"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manifest := strings.Replace(s.sidecarSetManifest("bad", tc.spec), "{sidecarset: bad}", "{sidecarset: log}", 1)
			out, err := s.kubectl(t.Context(), manifest, "create", "--dry-run=server", "--validate=ignore", "--filename=-")
			if err == nil || !containsAll(out, tc.words) {
				t.Errorf("got %v: %s; want %q", err, out, tc.words)
			}
		})
	}
}

// In OpenKruise the namespace of v1alpha1 is turned into a selector, and does not come back.
func TestSidecarSetKeepsItsNamespaceInBothVersions(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	alpha := &v1alpha1.SidecarSet{}
	manifest := strings.NewReplacer("v1beta1", "v1alpha1", "selector:", "namespaceSelector: {matchLabels: {team: a}}, selector:").
		Replace(s.sidecarSetManifest("both", "containers: [{name: a, image: a, fieldOfTheFuture: {x: 1}}]"))
	alpha.Name = s.namespace + "-both"
	out, err := s.kubectl(t.Context(), manifest, "create", "--validate=ignore", "--filename=-")
	s.check(err, "create in v1alpha1: %s", out)
	t.Cleanup(func() { _ = s.Delete(t.Context(), alpha) })
	beta := &v1beta1.SidecarSet{}
	s.await("update in v1beta1", func(ctx context.Context) (bool, error) { // the manager writes the status meanwhile
		if err := s.Get(ctx, client.ObjectKeyFromObject(alpha), beta); err != nil {
			return false, err
		}
		beta.Annotations = map[string]string{"a": "b"}
		err := s.Update(ctx, beta)
		if apierrors.IsConflict(err) {
			return false, nil
		}
		return err == nil, err
	})
	s.check(s.Get(t.Context(), client.ObjectKeyFromObject(alpha), alpha), "get in v1alpha1")
	if alpha.Spec.Namespace != s.namespace || alpha.Spec.NamespaceSelector == nil || alpha.Spec.NamespaceSelector.MatchLabels["team"] != "a" {
		t.Errorf("namespace %q, namespaceSelector %v", alpha.Spec.Namespace, alpha.Spec.NamespaceSelector)
	}
	s.await("an answer to another update", func(ctx context.Context) (bool, error) {
		if err := s.Get(ctx, client.ObjectKeyFromObject(alpha), beta); err != nil {
			return false, err
		}
		beta.Spec.Namespace, beta.Spec.NamespaceSelector = "", nil
		err := s.Update(ctx, beta)
		if apierrors.IsConflict(err) {
			return false, nil
		}
		if err == nil || !strings.Contains(err.Error(), "all namespaces") {
			t.Errorf("the SidecarSet selects pods of all namespaces: %v", err)
		}
		return true, nil
	})
}

func TestSidecarSetIsExplained(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	for field, words := range map[string]string{
		"sidecarset.spec.containers.lifecycle.preStop": "PreStop", "sidecarset.spec.volumes.configMap": "configMap",
		"sidecarset.spec.injectionStrategy.conflictPolicy": "refuses the pod",
	} {
		if out := s.run("explain", field); !strings.Contains(out, words) {
			t.Errorf("kubectl explain %s:\n%s", field, out)
		}
	}
}

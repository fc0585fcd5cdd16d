package expression_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/sidecarset/expression"
)

// amounts reads "cpu memory"; "-" for none.
func amounts(text string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i, amount := range strings.Fields(text) {
		if amount != "-" {
			list[[]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}[i]] = resource.MustParse(amount)
		}
	}
	return list
}

func TestResourcesAreComputedFromThoseOfTheContainers(t *testing.T) {
	t.Parallel()
	const sum, most = v1beta1.TargetContainersSum, v1beta1.TargetContainersMax
	for name, tc := range map[string]struct {
		mode             v1beta1.TargetContainersMode
		limits, requests *v1beta1.ResourceExprList
		targets          [][2]string // limits and requests
		want             [2]string
	}{
		"sum":                                  {sum, &v1beta1.ResourceExprList{CPU: "cpu", Memory: "memory"}, nil, [][2]string{{"1 1Gi", ""}, {"2 3Gi", ""}}, [2]string{"3 4Gi", ""}},
		"maximum":                              {most, &v1beta1.ResourceExprList{CPU: "cpu", Memory: "memory"}, nil, [][2]string{{"1 3Gi", ""}, {"2 1Gi", ""}}, [2]string{"2 3Gi", ""}},
		"requests from requests":               {sum, nil, &v1beta1.ResourceExprList{CPU: "cpu*50%", Memory: "memory"}, [][2]string{{"9 9Gi", "1 1Gi"}}, [2]string{"", "500m 1Gi"}},
		"both":                                 {sum, &v1beta1.ResourceExprList{CPU: "cpu"}, &v1beta1.ResourceExprList{CPU: "cpu"}, [][2]string{{"2", "1"}}, [2]string{"2", "1"}},
		"nothing asked for":                    {sum, nil, nil, [][2]string{{"1 1Gi", "1 1Gi"}}, [2]string{"", ""}},
		"one of them is unlimited":             {sum, &v1beta1.ResourceExprList{CPU: "cpu", Memory: "memory"}, nil, [][2]string{{"1 1Gi", ""}, {"- 1Gi", ""}}, [2]string{"- 2Gi", ""}},
		"a constant although it is unlimited":  {sum, &v1beta1.ResourceExprList{CPU: "200m"}, nil, [][2]string{{"", ""}}, [2]string{"200m", ""}},
		"what is not requested counts as none": {sum, nil, &v1beta1.ResourceExprList{CPU: "max(cpu, 50m)"}, [][2]string{{"", ""}, {"", "20m"}}, [2]string{"", "50m"}},
	} {
		p, err := expression.NewPolicy(&v1beta1.ResourcesPolicy{TargetContainersMode: tc.mode, ResourcesExpr: v1beta1.ResourcesExpr{Limits: tc.limits, Requests: tc.requests}})
		if err != nil {
			t.Fatal(err)
		}
		var targets []corev1.ResourceRequirements
		for _, target := range tc.targets {
			targets = append(targets, corev1.ResourceRequirements{Limits: amounts(target[0]), Requests: amounts(target[1])})
		}
		got, err := p.Evaluate(targets)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for i, list := range []corev1.ResourceList{got.Limits, got.Requests} {
			want := amounts(tc.want[i])
			same := len(list) == len(want)
			for key, amount := range want {
				has := list[key]
				same = same && has.Cmp(amount) == 0
			}
			if !same {
				t.Errorf("%s: %s %v, want %v", name, []string{"limits", "requests"}[i], list, want)
			}
		}
	}
}

func TestErrorsOfAResourcesPolicyNameTheField(t *testing.T) {
	t.Parallel()
	list := func(cpu, memory string) *v1beta1.ResourceExprList {
		return &v1beta1.ResourceExprList{CPU: cpu, Memory: memory}
	}
	for want, source := range map[string]v1beta1.ResourcesPolicy{
		"targetContainersNameRegex: ":                             {TargetContainersNameRegex: "("},
		"resourcesExpr.limits.cpu: ":                              {ResourcesExpr: v1beta1.ResourcesExpr{Limits: list("x", "")}},
		"resourcesExpr.limits.memory: unknown name cpu":           {ResourcesExpr: v1beta1.ResourcesExpr{Limits: list("", "cpu")}},
		"resourcesExpr.requests.cpu: ":                            {ResourcesExpr: v1beta1.ResourcesExpr{Requests: list("x", "")}},
		"resourcesExpr.requests.memory: ":                         {ResourcesExpr: v1beta1.ResourcesExpr{Requests: list("", "x")}},
		"requests.cpu cannot be computed from 1: the result is n": {ResourcesExpr: v1beta1.ResourcesExpr{Requests: list("cpu-2", "")}},
	} {
		p, err := expression.NewPolicy(&source)
		if err == nil {
			_, err = p.Evaluate([]corev1.ResourceRequirements{{Requests: amounts("1")}})
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

package expression_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/refit-project/refit/api/v1beta1"
	"github.com/refit-project/refit/internal/foreign"
	"github.com/refit-project/refit/sidecarset/expression"
	"github.com/refit-project/refit/test/kit/watchdog"
)

func TestExpressions(t *testing.T) {
	t.Parallel()
	for text, tc := range map[string]struct {
		unit     expression.Unit
		variable string
		want     string // a quantity, or words of the error after !
	}{
		"max(cpu*50%, 50m)":           {expression.CPU, "200m", "100m"},
		"MAX(CPU*50%, 50m)":           {expression.CPU, "60m", "50m"},
		"min(cpu, 1)":                 {expression.CPU, "2", "1"},
		"200Mi":                       {expression.Memory, "1Gi", "200Mi"},
		"memory / 3":                  {expression.Memory, "100", "34"},
		"cpu/3":                       {expression.CPU, "100m", "34m"},
		"cpu * 0.1":                   {expression.CPU, "300m", "30m"},
		"10% * memory + 2 * 1.5Gi":    {expression.Memory, "10Gi", "4Gi"},
		"-(cpu - 300m)":               {expression.CPU, "100m", "200m"},
		"cpu - 50m - 50m":             {expression.CPU, "200m", "100m"},
		"2 + 3 * 4":                   {expression.CPU, "0", "14"},
		"1e3m":                        {expression.CPU, "0", "1"},
		".5":                          {expression.CPU, "0", "500m"},
		"max(min(cpu, 4), 100m)*200%": {expression.CPU, "8", "8"},
		"cpu-1":                       {expression.CPU, "500m", "!negative"},
		"cpu*cpu":                     {expression.CPU, "1", "!quantities"},
		"1/cpu":                       {expression.CPU, "1", "!quantities"},
		"cpu/(1-1)":                   {expression.CPU, "1", "!division by zero"},
		"memory":                      {expression.CPU, "1", "!unknown name memory"},
		"sum(cpu, 1)":                 {expression.CPU, "1", "!unknown name sum"},
		"max(cpu)":                    {expression.CPU, "1", "!unexpected"},
		"max(cpu, 1, 2)":              {expression.CPU, "1", "!unexpected"},
		"cpu cpu":                     {expression.CPU, "1", "!unexpected"},
		"1Ei":                         {expression.CPU, "1", "!unknown suffix"},
		"":                            {expression.CPU, "1", "!end"},
		"(cpu":                        {expression.CPU, "1", "!end"},
		"cpu # 1":                     {expression.CPU, "1", "!character"},
		"1k - 1e3":                    {expression.Memory, "0", "0"},
		"1M - 1e6":                    {expression.Memory, "0", "0"},
		"1G - 1e9":                    {expression.Memory, "0", "0"},
		"1T - 1e12":                   {expression.Memory, "0", "0"},
		"1P - 1e15":                   {expression.Memory, "0", "0"},
		"1Ki + 1":                     {expression.Memory, "0", "1025"},
		"1Gi - 1024Mi":                {expression.Memory, "0", "0"},
		"1Ti - 1024Gi":                {expression.Memory, "0", "0"},
		"1Pi - 1024Ti":                {expression.Memory, "0", "0"},
		"memory * 1Ki":                {expression.Memory, "1", "!quantities"},
		"min(2, 1) + max(2, 3)":       {expression.CPU, "0", "4"},
		"cpu - cpu":                   {expression.CPU, "1", "0"},
		"9223372036854775807 + 1":     {expression.Memory, "0", "!too large"},
		"9223372036854775807":         {expression.Memory, "0", "9223372036854775807"},
		"- - 1":                       {expression.CPU, "0", "1"},
		"2 * (1 + 2":                  {expression.CPU, "0", "!end"},
		"1 +":                         {expression.CPU, "0", "!end"},
		"* 2":                         {expression.CPU, "0", "!unexpected \"*\" before position 1"},
		"9e99 * 9e99 * cpu":           {expression.CPU, "1", "!too large"},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			e, err := expression.Parse(text, tc.unit)
			var got resource.Quantity
			if err == nil {
				got, err = e.Evaluate(resource.MustParse(tc.variable))
			}
			words, refused := strings.CutPrefix(tc.want, "!")
			switch {
			case refused && (err == nil || !strings.Contains(err.Error(), words)):
				t.Errorf("got %s, %v; want an error with %q", got.String(), err, words)
			case !refused && err != nil:
				t.Errorf("refused: %v", err)
			case !refused && got.Cmp(resource.MustParse(tc.want)) != 0:
				t.Errorf("got %s, want %s", got.String(), tc.want)
			}
		})
	}
}

func TestExpressionsAreBounded(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"long": strings.Repeat("1+", 600) + "1", "parentheses": strings.Repeat("(", 400) + "1" + strings.Repeat(")", 400),
		"signs": strings.Repeat("-", 900) + "1",
	} {
		if _, err := expression.Parse(text, expression.CPU); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for name, text := range map[string]string{
		"as long as may be": "1" + strings.Repeat(" ", 1023), "as deep as may be": strings.Repeat("(", 63) + "1" + strings.Repeat(")", 63),
	} {
		if _, err := expression.Parse(text, expression.CPU); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestResourcesOfPodsWithWhichNothingCanBeComputedAreRefused(t *testing.T) {
	t.Parallel()
	for _, amount := range []string{"1e300000000", "1e2147483647"} {
		for _, mode := range []v1beta1.TargetContainersMode{v1beta1.TargetContainersSum, v1beta1.TargetContainersMax} {
			watchdog.Watch(t, func() {
				p, err := expression.NewPolicy(&v1beta1.ResourcesPolicy{TargetContainersMode: mode, ResourcesExpr: v1beta1.ResourcesExpr{Limits: &v1beta1.ResourceExprList{CPU: "cpu*50%"}}})
				if err != nil {
					t.Error(err)
					return
				}
				of := func(cpu string) corev1.ResourceRequirements {
					return corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
				}
				if _, err := p.Evaluate([]corev1.ResourceRequirements{of("100m"), of(amount)}); !errors.Is(err, foreign.ErrUnreadable) {
					t.Errorf("%s, %s: %v", amount, mode, err)
				}
			})
		}
	}
}

// FuzzParse: no text makes the evaluation panic or take long, and what it returns is not negative.
func FuzzParse(f *testing.F) {
	f.Add("max(cpu*50%, 50m)")
	f.Add("-(cpu/3)+9e99*9e99*.5Pi")
	f.Fuzz(func(t *testing.T, text string) {
		e, err := expression.Parse(text, expression.CPU)
		if err != nil {
			return
		}
		for _, variable := range []string{"250m", "1e300000000", "1e2147483647"} {
			watchdog.Watch(t, func() {
				if got, err := e.Evaluate(resource.MustParse(variable)); err == nil && got.Sign() < 0 {
					t.Errorf("%q is %s", text, got.String())
				}
			})
		}
	})
}

package film

import (
	"math"
	"strconv"
	"testing"
)

// Text is legible as WCAG 2.2 asks for (level AA, success criterion 1.4.3).
func TestColoursAreLegible(t *testing.T) {
	t.Parallel()
	const least = 4.5
	for name, p := range map[string]palette{"light": light, "dark": dark} {
		for colour, value := range map[string]string{"text": p.text, "red": p.red, "green": p.green, "yellow": p.yellow} {
			a, b := luminance(t, value), luminance(t, p.background)
			if contrast := (max(a, b) + 0.05) / (min(a, b) + 0.05); contrast < least {
				t.Errorf("%s, %s: contrast %.1f", name, colour, contrast)
			}
		}
	}
}

// luminance is the relative luminance of a colour #rrggbb, as WCAG defines it.
func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	number, err := strconv.ParseUint(colour[1:], 16, 24)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for shift, weight := range map[int]float64{16: 0.2126, 8: 0.7152, 0: 0.0722} {
		part := float64(number>>shift&0xff) / 0xff
		if part <= 0.04045 {
			sum += weight * part / 12.92
		} else {
			sum += weight * math.Pow((part+0.055)/1.055, 2.4)
		}
	}
	return sum
}

package usage

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// Writer says which part of Refit has written what by a line of the audit log (audit.k8s.io/v1 Event); none: nothing
// that counts.
func Writer(line []byte) (who, resource string, err error) {
	var event struct {
		Stage string `json:"stage"`
		Verb  string `json:"verb"`
		User  struct {
			Username string `json:"username"`
		} `json:"user"`
		ObjectRef struct {
			Resource    string `json:"resource"`
			Subresource string `json:"subresource"`
		} `json:"objectRef"`
	}
	if err := json.Unmarshal(line, &event); err != nil {
		return "", "", fmt.Errorf("read audit log: %w", err)
	}
	who, refit := strings.CutPrefix(event.User.Username, "system:serviceaccount:refit-system:")
	if !refit || event.Stage != "ResponseComplete" {
		return "", "", nil
	}
	switch event.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
	default:
		return "", "", nil
	}
	switch event.ObjectRef.Resource {
	case "tokenreviews", "subjectaccessreviews": // questions, of those who read metrics
		return "", "", nil
	}
	return who, event.ObjectRef.Resource, nil
}

// Quantile of what came between two readings of a histogram, in its bucket linearly between the bounds.
func Quantile(before, after *dto.Histogram, q float64) time.Duration {
	total := after.GetSampleCount() - before.GetSampleCount()
	if total == 0 {
		return 0
	}
	rank := q * float64(total)
	lower, below := 0.0, 0.0
	for i, bucket := range after.GetBucket() {
		count := float64(bucket.GetCumulativeCount())
		if i < len(before.GetBucket()) {
			count -= float64(before.GetBucket()[i].GetCumulativeCount())
		}
		if count >= rank && count > below {
			if math.IsInf(bucket.GetUpperBound(), 1) { // later than the last bound
				return time.Duration(lower * float64(time.Second))
			}
			return time.Duration((lower + (bucket.GetUpperBound()-lower)*(rank-below)/(count-below)) * float64(time.Second))
		}
		lower, below = bucket.GetUpperBound(), count
	}
	return time.Duration(lower * float64(time.Second))
}

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/refit-project/refit/examples/hotupgrade/traffic"
)

func TestThePictureShowsVersionsAndFailures(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1000, 0)
	record := func(failed int) *recording {
		r := &recording{changes: []time.Time{begin.Add(time.Second)}, completed: []time.Time{begin.Add(2 * time.Second)}}
		for i := range 30 {
			answers := map[string]int{"1": 40}
			if i > 10 {
				answers = map[string]int{"2": 40 - failed}
			}
			r.intervals = append(r.intervals, traffic.Interval{Time: begin.Add(time.Duration(i) * traffic.Length), Answers: answers, Failed: failed * (i / 11)})
		}
		r.total = traffic.Interval{Answers: map[string]int{"1": 400}, Failed: failed}
		return r
	}
	drawing, err := draw(record(0), record(7))
	if err != nil {
		t.Fatal(err)
	}
	for decoder := xml.NewDecoder(strings.NewReader(string(drawing))); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
	}
	for _, words := range []string{"400 requests, 0 failed", "407 requests, 7 failed", "40 answered by version 1", "33 answered by version 2", "7 failed</title>", failure, "new image", "completed"} {
		if !strings.Contains(string(drawing), words) {
			t.Errorf("the picture lacks %q", words)
		}
	}
	if _, err := draw(&recording{}, &recording{}); err == nil {
		t.Error("a picture of nothing")
	}
}

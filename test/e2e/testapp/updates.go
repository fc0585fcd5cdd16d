package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path"
	"strings"
	"time"
)

// The kinds of updates. The first is put in place; of the others nothing may be left.
const (
	updateGood    = "good"
	updatePoison  = poison    // the application does not take it over: it is put in place and rolled back
	updateDigest  = "digest"  // another digest than the downloaded file has
	updateMissing = "missing" // one of the files is not there
	updateShort   = "short"   // the connection ends before the content does
	updateSlow    = "slow"    // the content does not end in time
	updateBroken  = "broken"  // the source answers with an error
)

var updateKinds = []string{
	updateGood, updateGood, updateGood, updateGood, updatePoison, updateDigest, updateMissing, updateShort, updateSlow, updateBroken,
}

// updatesConfig of the subcommand updates.
type updatesConfig struct {
	api, listen string
	pause       time.Duration
	seed        uint64
}

// answerTime is the patience with an answer: a source that does not end in time costs most of it.
const answerTime = 30 * time.Second

// updates is the subcommand: it has the sidecar of its pod update files again and again, from a source of its own that
// fails in many ways, and writes down what was asked for and what was answered.
func updates(args []string, j *journal, signals <-chan os.Signal) (int, error) {
	var cfg updatesConfig
	flags := flag.NewFlagSet("updates", flag.ContinueOnError)
	flags.StringVar(&cfg.api, "api", "http://127.0.0.1:5000/hot-update", "where updates are sent")
	flags.StringVar(&cfg.listen, "listen", "127.0.0.1:9000", "where the files are to be had")
	flags.DurationVar(&cfg.pause, "pause", time.Second, "between two updates")
	flags.Uint64Var(&cfg.seed, "seed", 1, "of the choices")
	if err := flags.Parse(args); err != nil {
		return 0, fmt.Errorf("%w: %w", errUsage, err)
	}
	if err := j.add(line{Event: eventStart}); err != nil {
		return 0, err
	}
	listener, err := net.Listen("tcp", cfg.listen) //nolint:noctx // once, at start
	if err != nil {
		return 0, fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{Handler: http.HandlerFunc(serveSource), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	ctx, cancel := context.WithCancel(context.Background())
	sent := make(chan error, 1)
	go func() { sent <- sendUpdates(ctx, cfg, "http://"+listener.Addr().String(), j) }()
	err = untilSignal(j, signals, served, sent)
	cancel()
	_ = server.Close()
	return 0, err
}

// untilSignal writes down the signals until one ends the program, or a part of it has failed.
func untilSignal(j *journal, signals <-chan os.Signal, served, sent <-chan error) error {
	for {
		select {
		case err := <-served:
			return err
		case err := <-sent:
			return err
		case s := <-signals:
			if err := j.add(line{Event: eventSignal, Signal: name(s)}); err != nil {
				return err
			}
			if ends(s) {
				return j.exit(0, "signal")
			}
		}
	}
}

func sendUpdates(ctx context.Context, cfg updatesConfig, source string, j *journal) error {
	choice := rand.New(rand.NewPCG(cfg.seed, uint64(os.Getpid())))
	begun := time.Now().UnixMilli()
	client := &http.Client{Timeout: answerTime, Transport: &http.Transport{DisableKeepAlives: true}}
	for n := 0; ctx.Err() == nil; n++ {
		kind := updateKinds[choice.IntN(len(updateKinds))]
		version := fmt.Sprintf("v%d-%d-%s", begun, n, kind)
		if err := j.add(line{Event: eventUpdate, Text: version}); err != nil {
			return err
		}
		code, answer, err := sendUpdate(ctx, client, cfg.api, source, version, kind)
		text := fmt.Sprintf("%s %d", version, code)
		switch {
		case err == nil && code != http.StatusOK:
			text += " " + answer
		case err != nil:
			text = version + " 0 " + err.Error()
		}
		if err := j.add(line{Event: eventUpdated, Text: text}); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(cfg.pause + time.Duration(choice.Int64N(int64(cfg.pause)+1))):
		}
	}
	return nil
}

// sendUpdate returns the HTTP status and the beginning of the answer, or the error that took its place.
func sendUpdate(ctx context.Context, client *http.Client, api, source, version, kind string) (code int, answer string, err error) {
	type file struct {
		Name   string `json:"name"`
		URL    string `json:"url"`
		SHA256 string `json:"sha256,omitempty"`
	}
	request := struct {
		Version string `json:"version"`
		Files   []file `json:"files"`
	}{Version: version}
	for n, name := range setFiles {
		how := updateGood
		if n == len(setFiles)-1 { // the others are as they should be
			how = kind
		}
		f := file{Name: name, URL: source + "/" + how + "/" + version}
		if kind == updateDigest {
			other := sha256.Sum256([]byte("another content"))
			f.SHA256 = hex.EncodeToString(other[:])
		}
		request.Files = append(request.Files, f)
	}
	body, err := json.Marshal(request)
	if err != nil {
		return 0, "", err
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, api, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	post.Header.Set("Content-Type", "application/json")
	response, err := client.Do(post)
	if err != nil {
		return 0, "", err
	}
	const longest = 500
	text, err := io.ReadAll(io.LimitReader(response.Body, longest))
	return response.StatusCode, strings.TrimSpace(string(text)), errors.Join(err, response.Body.Close())
}

// serveSource is GET /HOW/VERSION.
func serveSource(w http.ResponseWriter, r *http.Request) {
	how, version := strings.Trim(path.Dir(r.URL.Path), "/"), path.Base(r.URL.Path)
	text := content(version)
	switch how {
	case updateMissing:
		http.NotFound(w, r)
	case updateBroken:
		http.Error(w, "out of order", http.StatusInternalServerError)
	case updateShort:
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		_, _ = w.Write(text[:len(text)/2])
	case updateSlow:
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		_, _ = w.Write(text[:len(text)/2])
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	default:
		_, _ = w.Write(text)
	}
}

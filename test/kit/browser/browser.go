// Package browser controls a headless Chromium by the DevTools protocol, for tests of pages. It is for tests only.
package browser

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// Page is a page of a browser that ends with its test.
type Page struct {
	t       *testing.T
	in      io.Writer
	out     *bufio.Reader
	session string
	last    int
}

// Open starts a browser with an empty page. The test is skipped if there is no browser.
func Open(t *testing.T) *Page {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium: hack/packages.sh chromium=chromium installs it on Debian")
	}
	commands, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, answers, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir(), "about:blank")
	cmd.ExtraFiles = []*os.File{commands, answers} // 3 and 4
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = commands.Close()
	_ = answers.Close()
	p := &Page{t: t, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		p.session = ""
		p.send("Browser.close", nil) // so that its files are not in use any more
		_, _ = io.Copy(io.Discard, out)
		_ = in.Close()
		_ = out.Close()
		_ = cmd.Wait()
	})
	var target struct{ TargetID string }
	p.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	p.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	p.session = attached.SessionID
	return p
}

func (p *Page) send(method string, params map[string]any) {
	p.last++
	message := map[string]any{"id": p.last, "method": method, "params": params}
	if params == nil {
		message["params"] = map[string]any{}
	}
	if p.session != "" {
		message["sessionId"] = p.session
	}
	text, err := json.Marshal(message)
	if err == nil {
		_, err = p.in.Write(append(text, 0))
	}
	if err != nil {
		p.t.Errorf("%s: %v", method, err)
	}
}

// call sends a command, and waits for its answer.
func (p *Page) call(method string, params map[string]any, result any) {
	p.t.Helper()
	if err := p.ask(method, params, result); err != nil {
		p.t.Fatal(err)
	}
}

// ask is call with the error of the command.
func (p *Page) ask(method string, params map[string]any, result any) error {
	p.t.Helper()
	p.send(method, params)
	for {
		text, err := p.out.ReadBytes(0)
		if err != nil {
			p.t.Fatalf("%s: the browser has ended: %v", method, err)
		}
		var answer struct {
			ID     int
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err := json.Unmarshal(text[:len(text)-1], &answer); err != nil {
			p.t.Fatal(err)
		}
		if answer.ID != p.last { // an event
			continue
		}
		if answer.Error != nil {
			return &refusedError{method, answer.Error.Message}
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(answer.Result, result)
	}
}

// Go opens an address.
func (p *Page) Go(address string) {
	p.t.Helper()
	var result struct{ ErrorText string }
	if p.call("Page.navigate", map[string]any{"url": address}, &result); result.ErrorText != "" {
		p.t.Fatalf("%s: %s", address, result.ErrorText)
	}
}

// Eval returns the value of an expression of JavaScript. It waits for a promise.
func (p *Page) Eval(expression string) any {
	p.t.Helper()
	value, err := p.try(expression)
	if err != nil {
		p.t.Fatal(err)
	}
	return value
}

type refusedError struct{ what, message string }

func (e *refusedError) Error() string { return e.what + ": " + e.message }

func (p *Page) try(expression string) (any, error) {
	p.t.Helper()
	var result struct {
		Result           struct{ Value any }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	err := p.ask("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true}, &result)
	if err != nil {
		return nil, err
	}
	if e := result.ExceptionDetails; e != nil {
		return nil, &refusedError{expression, e.Text + " " + e.Exception.Description}
	}
	return result.Result.Value, nil
}

// Await waits until an expression is true, also across pages.
func (p *Page) Await(expression string) {
	p.t.Helper()
	const patience = 30 * time.Second
	for began := time.Now(); time.Since(began) < patience; {
		value, err := p.try(fmt.Sprintf("new Promise((done) => { const end = () => { clearInterval(look); done(!!(%s)); }; const look = setInterval(() => { if (%s) end(); }, 20); setTimeout(end, 500); })", expression, expression))
		if err == nil && value == true { // an error means that the page was left meanwhile
			return
		}
	}
	p.t.Fatalf("not true: %s\n%v", expression, p.Eval("document.documentElement.outerHTML.slice(0, 6000)"))
}

// Press presses and releases a key, as Tab or Enter.
func (p *Page) Press(key string) {
	p.t.Helper()
	codes := map[string]int{"Tab": 9, "Enter": 13}
	down := map[string]any{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
	if key == "Enter" {
		down["text"] = "\r"
	}
	p.call("Input.dispatchKeyEvent", down, nil)
	p.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "code": key, "windowsVirtualKeyCode": codes[key]}, nil)
}

// Dark sets whether the user prefers dark colours.
func (p *Page) Dark(dark bool) {
	p.t.Helper()
	value := "light"
	if dark {
		value = "dark"
	}
	p.Prefers("prefers-color-scheme", value)
}

// Prefers sets what the user prefers, by a media feature of CSS, as prefers-reduced-motion, and forgets other preferences.
func (p *Page) Prefers(feature, value string) {
	p.t.Helper()
	p.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": feature, "value": value}}}, nil)
}

// Picture returns the page as PNG, in a window of a size.
func (p *Page) Picture(width, height int) []byte {
	p.t.Helper()
	p.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
	var result struct{ Data string }
	p.call("Page.captureScreenshot", map[string]any{"format": "png"}, &result)
	picture, err := base64.StdEncoding.DecodeString(result.Data)
	if err != nil {
		p.t.Fatal(err)
	}
	return picture
}

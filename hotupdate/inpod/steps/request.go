package steps

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/refit-project/refit/hotupdate/action"
)

// Request is an HTTP request to the program. Address and Port are how the reference implementation writes URL.
type Request struct {
	Address            string            `yaml:"address"`
	Port               int               `yaml:"port"`
	URL                string            `yaml:"url"`
	Method             string            `yaml:"method"`
	Headers            map[string]string `yaml:"headers"`
	Body               string            `yaml:"body"`
	ExpectedStatusCode int               `yaml:"expectedStatusCode"`
}

func (r *Request) call() (action.Call, error) {
	target := r.URL
	if target == "" && r.Address != "" {
		target = r.Address
		if !strings.Contains(target, "://") {
			target = "http://" + target
		}
		if r.Port != 0 {
			scheme, rest, _ := strings.Cut(target, "://")
			host, path, slash := strings.Cut(rest, "/")
			target = scheme + "://" + net.JoinHostPort(host, strconv.Itoa(r.Port))
			if slash {
				target += "/" + path
			}
		}
	}
	header := http.Header{}
	for name, value := range r.Headers {
		header.Set(name, value)
	}
	call := action.Call{
		Method: cmp.Or(r.Method, http.MethodPost), URL: target, Header: header, Body: r.Body, ExpectedStatus: r.ExpectedStatusCode,
	}
	request, err := http.NewRequest(call.Method, target, http.NoBody) //nolint:noctx // is not sent
	if err != nil || request.URL.Host == "" || !strings.HasPrefix(request.URL.Scheme, "http") {
		return call, fmt.Errorf("request: want url, or address and port, of http or https, and a method")
	}
	return call, nil
}

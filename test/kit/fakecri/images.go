package fakecri

import (
	"context"
	"encoding/json"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// RegistryImage is an image that can be pulled. The fake resolves no names: an image is known by the text it is pulled by.
type RegistryImage struct {
	ID string
	// Takes is how long a pull lasts.
	Takes time.Duration
	// Auth is the only user name and password, joined with a colon, that the registry accepts; empty: anybody.
	Auth string
	// Err is answered instead, by a runtime with the words of containerd.
	Err error
}

// Pulled is one call of PullImage that was answered.
type Pulled struct {
	Image, User string
	Sandbox     *runtimeapi.PodSandboxConfig
	Code        codes.Code
}

// PutImage makes an image known to the registry; PutNodeImage puts it on the node.
func (r *Runtime) PutImage(name string, image RegistryImage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.registry[name] = image
}

// PutNodeImage puts an image on the node.
func (r *Runtime) PutNodeImage(name, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.images[name] = id
}

// Pulls are the pulls so far, in the order of their end.
func (r *Runtime) Pulls() []Pulled {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Pulled(nil), r.pulls...)
}

type imageService struct {
	runtimeapi.UnimplementedImageServiceServer
	*Runtime
}

// ImageStatus implements CRI.
func (s imageService) ImageStatus(_ context.Context, req *runtimeapi.ImageStatusRequest) (*runtimeapi.ImageStatusResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, ok := s.images[req.GetImage().GetImage()]
	if !ok {
		return &runtimeapi.ImageStatusResponse{}, nil
	}
	return &runtimeapi.ImageStatusResponse{Image: &runtimeapi.Image{Id: id, RepoTags: []string{req.GetImage().GetImage()}}}, nil
}

// PullImage implements CRI.
func (s imageService) PullImage(ctx context.Context, req *runtimeapi.PullImageRequest) (*runtimeapi.PullImageResponse, error) {
	name, auth := req.GetImage().GetImage(), req.GetAuth()
	s.mu.Lock()
	image, ok := s.registry[name]
	s.mu.Unlock()
	err := image.Err
	switch {
	case !ok:
		err = status.Errorf(codes.NotFound, "failed to pull and unpack image %q: failed to resolve reference %q: %s: not found", name, name, name)
	case image.Auth != "" && image.Auth != auth.GetUsername()+":"+auth.GetPassword():
		err = status.Errorf(codes.Unknown, "failed to pull and unpack image %q: failed to resolve reference %q: unexpected status from HEAD request to https://example.com/v2/?sig=1: 401 Unauthorized", name, name)
	case err == nil:
		err = (Fault{Delay: image.Takes}).strike(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pulls = append(s.pulls, Pulled{Image: name, User: auth.GetUsername(), Sandbox: req.GetSandboxConfig(), Code: status.Code(err)})
	if err != nil {
		return nil, err
	}
	s.images[name] = image.ID
	return &runtimeapi.PullImageResponse{ImageRef: image.ID}, nil
}

// verbose is the part of containerd's verbose status that tells the environment.
func verbose(in *instance) map[string]string {
	var info struct {
		RuntimeSpec struct {
			Process struct {
				Env []string `json:"env"`
			} `json:"process"`
		} `json:"runtimeSpec"`
	}
	info.RuntimeSpec.Process.Env = []string{"PATH=/bin"}
	for _, env := range in.config.GetEnvs() {
		info.RuntimeSpec.Process.Env = append(info.RuntimeSpec.Process.Env, env.GetKey()+"="+string(env.GetValue()))
	}
	text, err := json.Marshal(info)
	if err != nil {
		panic(err) // texts can always be encoded
	}
	return map[string]string{"info": string(text)}
}

package criproxy

import (
	"fmt"

	"google.golang.org/grpc/mem"
)

// frame is a message nobody has looked into.
type frame []byte

// codec passes frames through. Its name is the name of the codec whose bytes they are.
type codec struct{}

func (codec) Name() string { return "proto" }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, fmt.Errorf("marshal %T: not a frame", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(*f)}, nil
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return fmt.Errorf("unmarshal %T: not a frame", v)
	}
	*f = data.Materialize()
	return nil
}

package rest

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/protobuf/encoding/protojson"
)

var errTrailing = errors.New("the body continues after its JSON value")

// oneValue translates JSON as grpc-gateway does by default, but refuses a body that continues after its value.
type oneValue struct {
	runtime.HTTPBodyMarshaler
	options protojson.UnmarshalOptions
}

func newOneValue() *oneValue {
	options := protojson.UnmarshalOptions{DiscardUnknown: true}
	return &oneValue{runtime.HTTPBodyMarshaler{Marshaler: &runtime.JSONPb{
		MarshalOptions: protojson.MarshalOptions{EmitUnpopulated: true}, UnmarshalOptions: options,
	}}, options}
}

// NewDecoder implements runtime.Marshaler. The decoder reads the whole body: no method has a stream of requests.
func (m *oneValue) NewDecoder(r io.Reader) runtime.Decoder {
	decoder := runtime.DecoderWrapper{Decoder: json.NewDecoder(r), UnmarshalOptions: m.options}
	return runtime.DecoderFunc(func(value any) error {
		if err := decoder.Decode(value); err != nil {
			return err
		}
		if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
			return errTrailing
		}
		return nil
	})
}

package rest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"muster.example/gateway/similar"
)

// jsonFormat is the form of all messages.
var jsonFormat = protojson.MarshalOptions{EmitUnpopulated: true}

var errTrailing = errors.New("the body continues after its JSON value")

// oneValue translates JSON as grpc-gateway does by default, but refuses unknown fields, and a body that continues after
// its value.
type oneValue struct {
	runtime.HTTPBodyMarshaler
	options protojson.UnmarshalOptions
}

func newOneValue() *oneValue {
	var options protojson.UnmarshalOptions
	return &oneValue{runtime.HTTPBodyMarshaler{Marshaler: &runtime.JSONPb{
		MarshalOptions: jsonFormat, UnmarshalOptions: options,
	}}, options}
}

// NewDecoder implements runtime.Marshaler. The decoder reads the whole body: no method has a stream of requests.
func (m *oneValue) NewDecoder(r io.Reader) runtime.Decoder {
	decoder := runtime.DecoderWrapper{Decoder: json.NewDecoder(r), UnmarshalOptions: m.options}
	return runtime.DecoderFunc(func(value any) error {
		if err := decoder.Decode(value); err != nil {
			if body, ok := r.(*content); ok && body.fault == nil {
				body.refuseUnknown(value, err)
			}
			return err
		}
		if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
			return errTrailing
		}
		return nil
	})
}

var unknownField = regexp.MustCompile(`unknown field "([^"]*)"`)

// refuseUnknown notes the unknown field that an error of protojson names.
func (c *content) refuseUnknown(value any, err error) {
	found := unknownField.FindStringSubmatch(err.Error())
	message, ok := value.(proto.Message)
	if found == nil || !ok {
		return
	}
	fields := map[protoreflect.FullName][]string{}
	collectFields(message.ProtoReflect().Descriptor(), fields)
	var names []string
	for _, some := range fields {
		names = append(names, some...)
	}
	c.refuse(http.StatusBadRequest, UnknownField(found[1], correct(found[1], names, "field")))
}

// collectFields adds the names of all fields in a message and in those that it contains.
func collectFields(of protoreflect.MessageDescriptor, to map[protoreflect.FullName][]string) {
	if _, known := to[of.FullName()]; known {
		return
	}
	to[of.FullName()] = nil
	for i := range of.Fields().Len() {
		field := of.Fields().Get(i)
		to[of.FullName()] = append(to[of.FullName()], field.JSONName())
		if field.Kind() == protoreflect.MessageKind {
			collectFields(field.Message(), to)
		}
	}
}

// correct returns the next step after an unknown name.
func correct(name string, known []string, what string) string {
	if meant := similar.Name(name, known); meant != "" {
		return "Write " + meant + ", or leave it out: GET /api/v1/openapi.json describes the " + what + "s."
	}
	return "Leave it out: GET /api/v1/openapi.json describes the " + what + "s."
}

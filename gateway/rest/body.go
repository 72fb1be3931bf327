package rest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"unicode"
	"unicode/utf16"

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
		if err := m.decode(decoder, value); err != nil {
			if body, ok := r.(*content); ok && body.fault == nil {
				body.explain(value, err)
			}
			return err
		}
		if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
			return errTrailing
		}
		return nil
	})
}

// decode reads one value. An error about half of a surrogate pair, which protojson takes for the end of the text, is replaced.
func (m *oneValue) decode(decoder runtime.DecoderWrapper, value any) error {
	message, ok := value.(proto.Message)
	if !ok {
		return decoder.Decode(value)
	}
	var text json.RawMessage
	if err := decoder.Decoder.Decode(&text); err != nil {
		return err
	}
	err := m.options.Unmarshal(text, message)
	if half := halfOfPair(text); err != nil && half != "" {
		return &halfPairError{half}
	}
	return err
}

// halfPairError refuses an escape such as \ud83d without the other half of its character.
type halfPairError struct{ escape string }

// Error implements error.
func (e *halfPairError) Error() string {
	return e.escape + " is half of a character: a surrogate needs the other one, such as \\ud83d\\ude00"
}

// halfOfPair returns the first escape of a surrogate in valid JSON that is not followed by the other half; empty if there is none.
func halfOfPair(text []byte) string {
	const length = len(`\ud83d`)
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		if unit, ok := escapedUnit(text[i:]); !ok {
			i++ // the escaped character
		} else if !utf16.IsSurrogate(unit) {
			i += length - 1
		} else if low, ok := escapedUnit(text[i+length:]); ok && utf16.DecodeRune(unit, low) != unicode.ReplacementChar {
			i += 2*length - 1
		} else {
			return string(text[i : i+length])
		}
	}
	return ""
}

// escapedUnit returns the UTF-16 unit of an escape at the beginning of the text.
func escapedUnit(text []byte) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(unit), err == nil
}

var unknownField = regexp.MustCompile(`unknown field "([^"]*)"`)

// explain notes half of a surrogate pair, or the unknown field that an error of protojson names.
func (c *content) explain(value any, err error) {
	var half *halfPairError
	if errors.As(err, &half) {
		c.refuse(http.StatusBadRequest, InvalidBody(half.Error()))
		return
	}
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

package channel

import (
	"strings"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec below
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// textCodec encodes messages with valid UTF-8: it replaces invalid bytes in texts by U+FFFD. Without it, a call
// with an invalid text fails with INTERNAL.
type textCodec struct{ encoding.CodecV2 }

func newTextCodec() encoding.CodecV2 { return textCodec{encoding.GetCodecV2("proto")} }

func (c textCodec) Marshal(message any) (mem.BufferSlice, error) {
	if chunk, ok := message.(*Chunk); ok {
		return chunk.marshal()
	}
	bytes, err := c.CodecV2.Marshal(message)
	if typed, ok := message.(proto.Message); ok && err != nil {
		clean := proto.Clone(typed) // the caller's message is unchanged
		cleanText(clean.ProtoReflect())
		return c.CodecV2.Marshal(clean)
	}
	return bytes, err
}

func cleanText(message protoreflect.Message) {
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.IsMap():
			cleanMap(field, value.Map())
		case field.IsList():
			list := value.List()
			for i := range list.Len() {
				list.Set(i, cleanValue(field, list.Get(i)))
			}
		default:
			message.Set(field, cleanValue(field, value))
		}
		return true
	})
}

func cleanMap(field protoreflect.FieldDescriptor, entries protoreflect.Map) {
	type entry struct {
		key   protoreflect.MapKey
		value protoreflect.Value
	}
	var all []entry
	entries.Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
		all = append(all, entry{key, value})
		return true
	})
	for _, e := range all {
		entries.Clear(e.key)
		entries.Set(cleanValue(field.MapKey(), e.key.Value()).MapKey(), cleanValue(field.MapValue(), e.value))
	}
}

func cleanValue(field protoreflect.FieldDescriptor, value protoreflect.Value) protoreflect.Value {
	switch field.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(strings.ToValidUTF8(value.String(), "\uFFFD"))
	case protoreflect.MessageKind:
		cleanText(value.Message())
	}
	return value
}

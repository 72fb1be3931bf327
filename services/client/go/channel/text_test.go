package channel

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	musterv1 "muster.example/proto/gen/go/muster/v1"
)

const bad = "caf\xe9"

// fill sets every string of a message to an invalid text, down to a depth that reaches all types.
func fill(message protoreflect.Message, depth int) {
	fields := message.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		switch {
		case field.IsMap():
			if field.MapKey().Kind() == protoreflect.StringKind && field.MapValue().Kind() == protoreflect.StringKind {
				message.Mutable(field).Map().Set(protoreflect.ValueOfString(bad).MapKey(), protoreflect.ValueOfString(bad))
			}
		case field.Kind() == protoreflect.StringKind && field.IsList():
			message.Mutable(field).List().Append(protoreflect.ValueOfString(bad))
		case field.Kind() == protoreflect.StringKind:
			message.Set(field, protoreflect.ValueOfString(bad))
		case field.Kind() == protoreflect.MessageKind && depth > 0 && field.IsList():
			fill(message.Mutable(field).List().AppendMutable().Message(), depth-1)
		case field.Kind() == protoreflect.MessageKind && depth > 0:
			fill(message.Mutable(field).Message(), depth-1)
		}
	}
}

func TestEveryStringOfEveryMessageIsCleanedOnSend(t *testing.T) {
	codec, types := newTextCodec(), 0
	protoregistry.GlobalTypes.RangeMessages(func(kind protoreflect.MessageType) bool {
		if kind.Descriptor().FullName().Parent() != "muster.v1" {
			return true
		}
		types++
		message := kind.New()
		fill(message, 4)
		if _, err := codec.Marshal(message.Interface()); err != nil {
			t.Errorf("%s: %v", kind.Descriptor().FullName(), err)
		}
		return true
	})
	if types < 100 {
		t.Errorf("found only %d types of messages", types)
	}
}

func TestInvalidUTF8IsReplacedAndNothingElse(t *testing.T) {
	sent := &musterv1.SubmitResultRequest{Body: []byte(bad),
		Description: &musterv1.ResultDescription{Attempt: 3, FileName: bad, MediaType: "text/plain"}}
	buffers, err := newTextCodec().Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	var got musterv1.SubmitResultRequest
	if err := newTextCodec().Unmarshal(buffers, &got); err != nil {
		t.Fatal(err)
	}
	want := &musterv1.SubmitResultRequest{Body: []byte(bad),
		Description: &musterv1.ResultDescription{Attempt: 3, FileName: "caf\uFFFD", MediaType: "text/plain"}}
	if !proto.Equal(&got, want) {
		t.Errorf("got %v, want %v", &got, want)
	}
	if sent.Description.FileName != bad {
		t.Error("the caller's message was changed")
	}
}

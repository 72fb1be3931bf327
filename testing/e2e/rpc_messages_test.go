package e2e

import (
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// fieldValues are values of fields by the name of the field: those of the fleet of the test, and those that the services
// have answered. They let a generated request pass the first checks of a method.
type fieldValues struct {
	mutex sync.Mutex
	texts map[protoreflect.Name][]string
	ints  map[protoreflect.Name][]int64
}

const rememberedValues = 8

func (v *fieldValues) text(random *rand.Rand, name protoreflect.Name) (string, bool) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if known := v.texts[name]; len(known) > 0 {
		return known[random.IntN(len(known))], true
	}
	return "", false
}

func (v *fieldValues) int(random *rand.Rand, name protoreflect.Name) (int64, bool) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if known := v.ints[name]; len(known) > 0 {
		return known[random.IntN(len(known))], true
	}
	return 0, false
}

func keep[T any](known map[protoreflect.Name][]T, name protoreflect.Name, value T) {
	known[name] = append(known[name], value)
	if len(known[name]) > rememberedValues {
		// The first is that of the test.
		known[name] = append(known[name][:1], known[name][2:]...)
	}
}

// learn remembers the values of a response; an error if the bytes are not a message of this type.
func (v *fieldValues) learn(of protoreflect.MessageDescriptor, response []byte) error {
	message := dynamicpb.NewMessage(of)
	if err := proto.Unmarshal(response, message); err != nil {
		return err
	}
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.learnFrom(message)
	return nil
}

func (v *fieldValues) learnFrom(message protoreflect.Message) {
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		one := func(value protoreflect.Value) {
			switch field.Kind() {
			case protoreflect.MessageKind:
				v.learnFrom(value.Message())
			case protoreflect.StringKind:
				keep(v.texts, field.Name(), value.String())
			case protoreflect.BytesKind:
				keep(v.texts, field.Name(), string(value.Bytes()))
			case protoreflect.Int64Kind:
				keep(v.ints, field.Name(), value.Int())
			}
		}
		if field.IsList() {
			for i := range min(value.List().Len(), rememberedValues) {
				one(value.List().Get(i))
			}
		} else if !field.IsMap() {
			one(value)
		}
		return true
	})
}

// generator makes messages from a seed.
type generator struct {
	random *rand.Rand
	known  *fieldValues
	left   int     // bytes
	odd    float64 // the part of the values that are not plausible
}

func newGenerator(random *rand.Rand, known *fieldValues) *generator {
	return &generator{random, known, 256 << 10, []float64{0, 0.05, 0.3, 1}[random.IntN(4)]}
}

func (g *generator) chance(p float64) bool { return g.random.Float64() < p }

// wire is one message as a client may send it, valid or not.
func (g *generator) wire(of protoreflect.MessageDescriptor) []byte {
	message := g.message(of, 6)
	if g.odd == 0 || !g.chance(0.2) {
		return message
	}
	return mutate(g.random, message)
}

// mutate damages bytes: a flipped bit, a lost end, something in between, a foreign field.
func mutate(random *rand.Rand, message []byte) []byte {
	message = append([]byte{}, message...)
	at := 0
	if len(message) > 0 {
		at = random.IntN(len(message))
	}
	switch random.IntN(5) {
	case 0:
		if len(message) > 0 {
			message[at] ^= 1 << random.IntN(8)
		}
	case 1:
		message = message[:at]
	case 2:
		junk := make([]byte, random.IntN(40))
		for i := range junk {
			junk[i] = byte(random.Uint32())
		}
		message = append(message[:at:at], append(junk, message[at:]...)...)
	case 3:
		message = protowire.AppendTag(message, protowire.Number(1+random.IntN(100)), protowire.StartGroupType)
	default:
		message = protowire.AppendTag(message, protowire.Number(1+random.IntN(1<<29-1)), protowire.BytesType)
		message = protowire.AppendString(message, strings.Repeat("u", random.IntN(1000)))
	}
	return message
}

func (g *generator) message(of protoreflect.MessageDescriptor, depth int) (out []byte) {
	chosen := map[protoreflect.Name]protoreflect.Name{} // the member of each oneof
	for i := range of.Oneofs().Len() {
		fields := of.Oneofs().Get(i).Fields()
		chosen[of.Oneofs().Get(i).Name()] = fields.Get(g.random.IntN(fields.Len())).Name()
	}
	for i := range of.Fields().Len() {
		field := of.Fields().Get(i)
		odd := g.chance(g.odd)
		if oneof := field.ContainingOneof(); oneof != nil && !odd && chosen[oneof.Name()] != field.Name() || g.chance(0.1) {
			continue // an odd message has several members
		}
		count := 1
		if field.IsList() {
			if count = 1 + g.random.IntN(2); odd {
				count = []int{0, 3, 100, 3000}[g.random.IntN(4)]
			}
		} else if odd && g.chance(0.2) {
			count = 2 // the last one counts
		}
		for range count {
			if g.left < 0 {
				return out
			}
			value := g.field(field, depth, odd)
			g.left -= len(value)
			out = append(out, value...)
		}
	}
	return out
}

// field is one value with its tag.
func (g *generator) field(field protoreflect.FieldDescriptor, depth int, odd bool) []byte {
	tag := func(kind protowire.Type) []byte { return protowire.AppendTag(nil, field.Number(), kind) }
	switch field.Kind() {
	case protoreflect.MessageKind:
		if depth == 0 {
			return nil
		}
		return protowire.AppendBytes(tag(protowire.BytesType), g.message(field.Message(), depth-1))
	case protoreflect.StringKind, protoreflect.BytesKind:
		return protowire.AppendString(tag(protowire.BytesType), g.text(field, odd))
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return protowire.AppendFixed32(tag(protowire.Fixed32Type), uint32(g.number(field, odd)))
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return protowire.AppendFixed64(tag(protowire.Fixed64Type), uint64(g.number(field, odd)))
	default:
		return protowire.AppendVarint(tag(protowire.VarintType), uint64(g.number(field, odd)))
	}
}

var oddNumbers = []int64{0, 1, -1, math.MaxInt32, math.MinInt32, math.MaxInt32 + 1, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1,
	1e9, 1e12, 253402300800, -62135596801}

func (g *generator) number(field protoreflect.FieldDescriptor, odd bool) int64 {
	if odd {
		return oddNumbers[g.random.IntN(len(oddNumbers))]
	}
	if field.Enum() != nil {
		values := field.Enum().Values()
		return int64(values.Get(g.random.IntN(values.Len())).Number())
	}
	if value, found := g.known.int(g.random, field.Name()); found {
		return value
	}
	switch field.FullName() {
	case "google.protobuf.Timestamp.seconds":
		return time.Now().Unix() + int64(g.random.IntN(600))
	case "google.protobuf.Duration.seconds":
		return int64(g.random.IntN(120))
	}
	return int64(g.random.IntN(4))
}

func (g *generator) text(field protoreflect.FieldDescriptor, odd bool) string {
	if !odd {
		if value, found := g.known.text(g.random, field.Name()); found {
			return value
		}
		if field.Kind() == protoreflect.BytesKind {
			return strings.Repeat("\x07", []int{0, 4, 32, 64}[g.random.IntN(4)])
		}
		return "x" + string(rune('a'+g.random.IntN(26)))
	}
	switch g.random.IntN(7) {
	case 0:
		return ""
	case 1:
		return strings.Repeat("n", 1<<g.random.IntN(17))
	case 2:
		return "a\x00b\r\n\x1b[31m"
	case 3:
		return "../../" + strings.Repeat("%2e", g.random.IntN(20))
	case 4:
		noise := make([]byte, g.random.IntN(200))
		for i := range noise {
			noise[i] = byte(g.random.Uint32())
		}
		return string(noise) // often not UTF-8
	case 5:
		return "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
	default:
		return "caf\xe9\u202e"
	}
}

#include "services/common/rpc/message_text.h"

#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "services/common/base/utf8.h"

namespace muster {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// The parser's own limit.
constexpr int kMaxDepth = 100;

// The wire types of protobuf.
enum WireType : uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kStartGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5,
};

// Where a type of message has text.
struct TextFields {
  struct Field {
    bool text = false;
    const TextFields* message = nullptr;  // set if it may hold text
  };
  std::vector<Field> fields;  // by number
  bool any = false;
  bool complete = false;  // false while it is being found, of a type that holds itself
};

// Finds the text of types, each once. For one thread: that needs no lock for each message.
class TextIndex {
 public:
  const TextFields& Of(const Descriptor& type) {
    auto& known = types_[&type];
    if (known != nullptr) return *known;
    known = std::make_unique<TextFields>();
    TextFields& found = *known;  // `known` moves when the map grows
    for (int i = 0; i < type.field_count(); ++i) Add(*type.field(i), &found);
    found.complete = true;
    return found;
  }

 private:
  void Add(const FieldDescriptor& field, TextFields* found) {
    TextFields::Field entry;
    entry.text = field.type() == FieldDescriptor::TYPE_STRING;
    if (field.type() == FieldDescriptor::TYPE_MESSAGE) {
      const TextFields& inner = Of(*field.message_type());
      if (inner.any || !inner.complete) entry.message = &inner;
    }
    if (!entry.text && entry.message == nullptr) return;
    found->any = true;
    const auto number = static_cast<size_t>(field.number());
    if (found->fields.size() <= number) found->fields.resize(number + 1);
    found->fields[number] = entry;
  }

  absl::flat_hash_map<const Descriptor*, std::unique_ptr<TextFields>> types_;
};

TextIndex& Index() {
  thread_local TextIndex index;
  return index;
}

bool TakeVarint(std::string_view* bytes, uint64_t* value) {
  *value = 0;
  for (size_t i = 0; i < bytes->size() && i < 10; ++i) {
    const auto byte = static_cast<uint8_t>((*bytes)[i]);
    *value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      bytes->remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

void AppendVarint(uint64_t value, std::string* to) {
  for (; value >= 0x80; value >>= 7) to->push_back(static_cast<char>(value | 0x80));
  to->push_back(static_cast<char>(value));
}

// One field in wire format.
struct WireField {
  std::string_view whole;  // with its tag
  uint64_t tag = 0;
  std::string_view body;  // of kBytes
  WireType type() const { return static_cast<WireType>(tag & 7); }
  uint64_t number() const { return tag >> 3; }
};

bool TakeField(std::string_view* bytes, WireField* field) {
  const std::string_view before = *bytes;
  uint64_t value = 0;
  if (!TakeVarint(bytes, &field->tag)) return false;
  size_t size = 0;
  switch (field->type()) {
    case kVarint:
      if (!TakeVarint(bytes, &value)) return false;
      break;
    case kBytes:
      if (!TakeVarint(bytes, &value)) return false;
      size = value;
      break;
    case kFixed64:
      size = 8;
      break;
    case kFixed32:
      size = 4;
      break;
    case kStartGroup:
    case kEndGroup:
      break;
    default:
      return false;
  }
  if (size > bytes->size()) return false;
  field->body = bytes->substr(0, size);
  bytes->remove_prefix(size);
  field->whole = before.substr(0, before.size() - bytes->size());
  return true;
}

// Calls `visit` for each field of the message, up to one that cannot be read; returns what is left.
// `known` is null for a field without text, and for those within a group: nothing of ours has one.
template <typename Visit>
std::string_view ForEachField(const TextFields& fields, std::string_view bytes,
                              const Visit& visit) {
  int group = 0;
  WireField field;
  for (std::string_view rest = bytes; !rest.empty(); bytes = rest) {
    if (!TakeField(&rest, &field)) return bytes;
    if (field.type() == kStartGroup) ++group;
    if (field.type() == kEndGroup) --group;
    const bool mine = group == 0 && field.type() == kBytes && field.number() < fields.fields.size();
    if (!visit(field, mine ? &fields.fields[field.number()] : nullptr)) return {};
  }
  return {};
}

bool IsClean(const TextFields& fields, std::string_view bytes, int depth) {
  if (!fields.any || depth > kMaxDepth) return true;
  bool clean = true;
  ForEachField(fields, bytes, [&](const WireField& field, const TextFields::Field* known) {
    if (known == nullptr) return true;
    if (known->text) {
      clean = IsUtf8(field.body);
    } else if (known->message != nullptr) {
      clean = IsClean(*known->message, field.body, depth + 1);
    }
    return clean;
  });
  return clean;
}

std::string Cleaned(const TextFields& fields, std::string_view bytes, int depth) {
  if (!fields.any || depth > kMaxDepth) return std::string(bytes);
  std::string out;
  out.reserve(bytes.size());
  const std::string_view rest =
      ForEachField(fields, bytes, [&](const WireField& field, const TextFields::Field* known) {
        if (known == nullptr || (!known->text && known->message == nullptr)) {
          out += field.whole;
          return true;
        }
        const std::string body =
            known->text ? CleanUtf8(field.body) : Cleaned(*known->message, field.body, depth + 1);
        AppendVarint(field.tag, &out);
        AppendVarint(body.size(), &out);
        out += body;
        return true;
      });
  return out.append(rest);
}

// Every message of ours has a descriptor.
const Descriptor& TypeOf(const google::protobuf::MessageLite& message) {
  return *dynamic_cast<const google::protobuf::Message&>(message).GetDescriptor();
}

std::string Flatten(const grpc::ByteBuffer& buffer) {
  std::string bytes;
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return bytes;
  bytes.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

}  // namespace

std::optional<std::string> CleanMessage(const Descriptor& type, std::string_view bytes) {
  const TextFields& fields = Index().Of(type);
  if (IsClean(fields, bytes, 0)) return std::nullopt;
  return Cleaned(fields, bytes, 0);
}

bool ParseCleaned(std::string_view bytes, google::protobuf::Message* message) {
  if (bytes.size() > INT_MAX) return false;
  if (message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return true;
  const auto cleaned = CleanMessage(*message->GetDescriptor(), bytes);
  return cleaned && message->ParseFromString(*cleaned);
}

grpc::Status SerializeMessage(const google::protobuf::MessageLite& message,
                              grpc::ByteBuffer* buffer) {
  const size_t size = message.ByteSizeLong();
  if (size > INT_MAX) return {grpc::StatusCode::INTERNAL, "the message is too large"};
  grpc::Slice slice(size);
  auto* const begin = const_cast<uint8_t*>(slice.begin());  // the slice is not shared yet
  message.SerializeWithCachedSizesToArray(begin);
  const std::string_view bytes(reinterpret_cast<const char*>(begin), size);
  if (const auto cleaned = CleanMessage(TypeOf(message), bytes)) slice = grpc::Slice(*cleaned);
  grpc::ByteBuffer(&slice, 1).Swap(buffer);
  return grpc::Status::OK;
}

grpc::Status DeserializeMessage(grpc::ByteBuffer* buffer, google::protobuf::MessageLite* message) {
  if (buffer == nullptr) return {grpc::StatusCode::INTERNAL, "no payload"};
  bool parsed = false;
  {
    grpc::ProtoBufferReader reader(buffer);
    if (!reader.status().ok()) return reader.status();
    parsed = message->ParseFromZeroCopyStream(&reader);
  }
  if (!parsed) {
    const auto cleaned = CleanMessage(TypeOf(*message), Flatten(*buffer));
    parsed = cleaned && message->ParseFromString(*cleaned);
  }
  buffer->Clear();
  return parsed ? grpc::Status::OK
                : grpc::Status(grpc::StatusCode::INTERNAL, "the message cannot be read");
}

}  // namespace muster

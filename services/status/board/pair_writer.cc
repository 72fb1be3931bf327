#include "services/status/board/pair_writer.h"

#include <algorithm>
#include <string_view>

#include "google/protobuf/io/coded_stream.h"

namespace muster {
namespace {

using google::protobuf::io::CodedOutputStream;

// The wire types of protobuf.
constexpr uint32_t kVarint = 0;
constexpr uint32_t kLengthDelimited = 2;

// More than tags, lengths, numbers and times of a pair take.
constexpr size_t kNumbers = 256;

constexpr uint32_t Tag(int field, uint32_t type) {
  return static_cast<uint32_t>(field) << 3 | type;
}

// Writes fields one after another; as protobuf does it, numbers and texts that say nothing are left
// out. There has to be room for all of them.
class Fields {
 public:
  explicit Fields(std::string* room) : begin_(reinterpret_cast<uint8_t*>(room->data())) {}

  size_t size() const { return static_cast<size_t>(at_ - begin_); }

  void Number(int field, int64_t value) {
    if (value == 0) return;
    at_ = CodedOutputStream::WriteTagToArray(Tag(field, kVarint), at_);
    at_ = CodedOutputStream::WriteVarint64ToArray(static_cast<uint64_t>(value), at_);
  }

  void Text(int field, std::string_view text) {
    if (text.empty()) return;
    Length(field, text.size());
    at_ = CodedOutputStream::WriteRawToArray(text.data(), static_cast<int>(text.size()), at_);
  }

  // A Timestamp or a Duration.
  void Time(int field, int64_t seconds, int64_t nanos) {
    at_ = CodedOutputStream::WriteTagToArray(Tag(field, kLengthDelimited), at_);
    uint8_t* const length = at_++;  // two numbers: never more than one byte
    Number(google::protobuf::Timestamp::kSecondsFieldNumber, seconds);
    Number(google::protobuf::Timestamp::kNanosFieldNumber, nanos);
    *length = static_cast<uint8_t>(at_ - length - 1);
  }

  void Time(int field, absl::Time time) {
    const google::protobuf::Timestamp timestamp = ToTimestamp(time);
    Time(field, timestamp.seconds(), timestamp.nanos());
  }

  // After its ByteSizeLong was asked.
  void Message(int field, const google::protobuf::MessageLite& message) {
    Length(field, static_cast<size_t>(message.GetCachedSize()));
    at_ = message.SerializeWithCachedSizesToArray(at_);
  }

 private:
  void Length(int field, size_t length) {
    at_ = CodedOutputStream::WriteTagToArray(Tag(field, kLengthDelimited), at_);
    at_ = CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(length), at_);
  }

  uint8_t* const begin_;
  uint8_t* at_ = begin_;
};

std::string Next(const Pair& pair, const PairFacts& facts, const PairView& view) {
  if (pair.reason == v1::REASON_RUNNING) return view.next_of_running;
  if (pair.reason == v1::REASON_NOT_STARTED) return view.next_of_not_started;
  return NextStep(pair.reason, facts, view.outlook, view.now);
}

// Returns when the last heartbeat arrived, or progress of a pair without heartbeats; the infinite
// past if none has arrived since the start of this service.
absl::Duration HeardAt(const Work& work) {
  return work.sender == nullptr ? work.received_at : work.sender->last_seen();
}

struct Words {
  std::string detail;
  std::string next;
};

Words WordsOf(const Pair& pair, const PairView& view) {
  Words words;
  if (pair.reason == v1::REASON_UNSPECIFIED) return words;
  if (view.brief && pair.reason == v1::REASON_NOT_STARTED) return words;
  const PairFacts facts = FactsOf(pair);
  words.detail = Detail(pair.reason, facts, view.now);
  if (!view.brief || pair.reason != v1::REASON_RUNNING) words.next = Next(pair, facts, view);
  return words;
}

// Returns the space for all fields that may be long.
size_t RoomFor(const Pair& pair, const Words& words) {
  size_t room = kNumbers + pair.plugin->name.size() + pair.node.size() + pair.error.size() +
                words.detail.size() + words.next.size();
  if (pair.work != nullptr && pair.work->progress != nullptr) {
    room += pair.work->progress->ByteSizeLong();
  }
  if (pair.work != nullptr && pair.work->fault != nullptr) room += pair.work->fault->ByteSizeLong();
  return room;
}

// The bytes of a v1::PairStatus, its fields in their order.
void Write(const Pair& pair, const PairView& view, std::string* bytes) {
  using Status = v1::PairStatus;
  const Work* const work = pair.work.get();
  const Words words = WordsOf(pair, view);
  bytes->resize(RoomFor(pair, words));
  Fields fields(bytes);
  fields.Text(Status::kPluginFieldNumber, pair.plugin->name);
  fields.Text(Status::kNodeFieldNumber, pair.node);
  fields.Number(Status::kOutcomeFieldNumber, pair.outcome);
  fields.Text(Status::kErrorFieldNumber, pair.error);
  fields.Number(Status::kSizeFieldNumber, pair.size);
  if (pair.updated != absl::InfinitePast()) {
    fields.Time(Status::kUpdateTimeFieldNumber, pair.updated);
  }
  if (work != nullptr && work->progress != nullptr) {
    fields.Message(Status::kProgressFieldNumber, *work->progress);
  }
  if (work != nullptr && work->sender != nullptr) {
    fields.Number(Status::kPresenceFieldNumber, work->sender->presence());
  }
  if (pair.reason != v1::REASON_UNSPECIFIED) {
    fields.Number(Status::kReasonFieldNumber, pair.reason);
    if (pair.reason_since != -absl::InfiniteDuration()) {
      fields.Time(Status::kReasonSinceFieldNumber, view.now.WallOf(pair.reason_since));
    }
  }
  fields.Text(Status::kDetailFieldNumber, words.detail);
  fields.Text(Status::kNextFieldNumber, words.next);
  const absl::Duration heard = work == nullptr ? -absl::InfiniteDuration() : HeardAt(*work);
  if (heard != -absl::InfiniteDuration()) {
    const int64_t age =
        absl::ToInt64Nanoseconds(std::max(view.now.monotonic - heard, absl::ZeroDuration()));
    fields.Time(Status::kHeartbeatAgeFieldNumber, age / 1'000'000'000, age % 1'000'000'000);
  }
  // The phase of a pair with an outcome is that before its end.
  if (work != nullptr && pair.pending()) fields.Number(Status::kPhaseFieldNumber, work->phase);
  if (work != nullptr && work->fault != nullptr) {
    fields.Message(Status::kFaultFieldNumber, *work->fault);
  }
  bytes->resize(fields.size());
}

}  // namespace

PairWriter::PairWriter(int field, std::string* out)
    : tag_(Tag(field, kLengthDelimited)), out_(out), begin_(out->size()) {}

void PairWriter::Add(const Pair& pair, const PairView& view) {
  Write(pair, view, &pair_);
  uint8_t head[16];
  uint8_t* end = CodedOutputStream::WriteTagToArray(tag_, head);
  end = CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(pair_.size()), end);
  out_->append(reinterpret_cast<const char*>(head), static_cast<size_t>(end - head));
  out_->append(pair_);
  ++count_;
}

size_t FillPair(const Pair& pair, const PairView& view, v1::PairStatus* out) {
  std::string bytes;
  Write(pair, view, &bytes);
  out->ParseFromString(bytes);
  return bytes.size();
}

}  // namespace muster

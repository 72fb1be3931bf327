#include "services/common/rpc/proto_time.h"

#include <algorithm>
#include <cstdint>

namespace muster {
namespace {

// The limits that timestamp.proto and duration.proto state.
constexpr int64_t kFirstSecond = -62135596800;
constexpr int64_t kLastSecond = 253402300799;
constexpr int64_t kMostSeconds = 315576000000;

template <typename Message>
void Set(absl::Duration since, int64_t least, int64_t most, Message* to) {
  const absl::Duration clamped = std::clamp(since, absl::Seconds(least), absl::Seconds(most));
  absl::Duration rest;
  const int64_t seconds = absl::IDivDuration(clamped, absl::Seconds(1), &rest);
  to->set_seconds(seconds);
  to->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
}

}  // namespace

absl::Time FromProto(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(std::clamp(time.seconds(), kFirstSecond, kLastSecond)) +
         absl::Nanoseconds(time.nanos());
}

absl::Duration FromProto(const google::protobuf::Duration& duration) {
  return absl::Seconds(std::clamp(duration.seconds(), -kMostSeconds, kMostSeconds)) +
         absl::Nanoseconds(duration.nanos());
}

void ToProto(absl::Time time, google::protobuf::Timestamp* to) {
  Set(time - absl::UnixEpoch(), kFirstSecond, kLastSecond, to);
  if (to->nanos() < 0) {  // before 1970 the fraction still counts forward
    to->set_seconds(to->seconds() - 1);
    to->set_nanos(to->nanos() + 1'000'000'000);
  }
}

void ToProto(absl::Duration duration, google::protobuf::Duration* to) {
  Set(duration, -kMostSeconds, kMostSeconds, to);
}

}  // namespace muster

#include "services/common/rpc/proto_time.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(ProtoTimeTest, TimesAndDurationsComeBackToTheNanosecond) {
  for (const int64_t nanos : {int64_t{0}, int64_t{1}, int64_t{1'500'000'000}, int64_t{-1},
                              int64_t{-2'000'000'001}, int64_t{1'700'000'000'123'456'789}}) {
    google::protobuf::Timestamp timestamp;
    ToProto(absl::FromUnixNanos(nanos), &timestamp);
    EXPECT_GE(timestamp.nanos(), 0) << nanos;
    EXPECT_EQ(absl::ToUnixNanos(FromProto(timestamp)), nanos);
    google::protobuf::Duration duration;
    ToProto(absl::Nanoseconds(nanos), &duration);
    EXPECT_EQ(absl::ToInt64Nanoseconds(FromProto(duration)), nanos);
  }
}

TEST(ProtoTimeTest, ValueOutOfRangeIsClamped) {
  google::protobuf::Timestamp timestamp;
  ToProto(absl::InfiniteFuture(), &timestamp);
  EXPECT_EQ(timestamp.seconds(), 253402300799);
  google::protobuf::Duration duration;
  ToProto(-absl::InfiniteDuration(), &duration);
  EXPECT_EQ(duration.seconds(), -315576000000);
  duration.set_seconds(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(FromProto(duration), absl::Seconds(315576000000));
}

}  // namespace
}  // namespace muster

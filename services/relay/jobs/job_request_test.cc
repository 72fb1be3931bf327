#include "services/relay/jobs/job_request.h"

#include <gtest/gtest.h>

#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

JobRequest Request(absl::Duration begin_within) {
  JobRequest request;
  ToProto(absl::UnixEpoch(), request.command.mutable_not_before());
  ToProto(absl::UnixEpoch() + begin_within, request.command.mutable_not_after());
  return request;
}

// A shorter one would end before an attached node gets the command.
TEST(JobRequestTest, WaitIsAtLeastASecondAndAtMostTheTimeToBegin) {
  JobRequest request = Request(absl::Minutes(5));
  EXPECT_EQ(request.wait(), kDefaultWait);
  for (const absl::Duration asked : {absl::ZeroDuration(), absl::Nanoseconds(1)}) {
    ToProto(asked, request.message.mutable_wait());
    EXPECT_EQ(request.wait(), absl::Seconds(1));
  }
  ToProto(absl::Seconds(30), request.message.mutable_wait());
  EXPECT_EQ(request.wait(), absl::Seconds(30));
  ToProto(absl::Hours(1), request.message.mutable_wait());
  EXPECT_EQ(request.wait(), absl::Minutes(5));
}

}  // namespace
}  // namespace muster

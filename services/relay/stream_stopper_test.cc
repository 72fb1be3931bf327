#include "services/relay/stream_stopper.h"

#include <optional>

#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

TEST(StreamStopperTest, EndAllEndsTheOpenStreamsAndRejectsNewOnes) {
  StreamStopper stopper;
  std::optional<absl::Status> ended;
  int closed_ended = 0;
  const auto open = stopper.Add([&](const absl::Status& why) { ended = why; });
  auto closed = stopper.Add([&](const absl::Status&) { ++closed_ended; });
  ASSERT_TRUE(open.ok() && closed.ok());
  *closed = nullptr;
  stopper.EndAll();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ReasonOf(*ended), "RELAY_STOPPING");
  EXPECT_EQ(closed_ended, 0);
  EXPECT_EQ(ReasonOf(stopper.Add([](const absl::Status&) {}).status()), "RELAY_STOPPING");
}

TEST(StreamStopperTest, StreamMayDropItsTicketWhileItIsEnded) {
  StreamStopper stopper;
  StreamStopper::Ticket ticket;
  ticket = *stopper.Add([&](const absl::Status&) { ticket = nullptr; });
  stopper.EndAll();
  EXPECT_EQ(ticket, nullptr);
}

TEST(StreamStopperTest, TicketMayOutliveTheStopper) {
  StreamStopper::Ticket ticket;
  {
    StreamStopper stopper;
    ticket = *stopper.Add([](const absl::Status&) {});
  }
  ticket = nullptr;
}

}  // namespace
}  // namespace muster

#include "services/common/rpc/request_memory.h"

#include <gtest/gtest.h>

#include <utility>

#include "services/common/base/error.h"

namespace muster {
namespace {

TEST(RequestMemoryTest, CallerAtItsLimitIsRefusedAndOthersAreNot) {
  RequestMemory memory({.in_all = 100, .of_caller = 40});
  auto first = memory.Reserve("a", 30);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(ReasonOf(memory.Reserve("a", 11).status()), "TOO_MANY_REQUEST_BYTES");
  EXPECT_TRUE(memory.Reserve("b", 11).ok());
  auto second = memory.Reserve("a", 10);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(memory.reserved(), 40);
  *first = RequestMemory::Ticket();
  EXPECT_TRUE(memory.Reserve("a", 30).ok());
}

TEST(RequestMemoryTest, RequestAboveTheLimitOfItsCallerIsAcceptedAlone) {
  RequestMemory memory({.in_all = 100, .of_caller = 40});
  const auto large = memory.Reserve("a", 60);
  ASSERT_TRUE(large.ok());
  EXPECT_EQ(ReasonOf(memory.Reserve("a", 1).status()), "TOO_MANY_REQUEST_BYTES");
}

TEST(RequestMemoryTest, AllCallersTogetherAreLimited) {
  RequestMemory memory({.in_all = 100, .of_caller = 60});
  const auto one = memory.Reserve("a", 60);
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(ReasonOf(memory.Reserve("b", 41).status()), "OVERLOADED");
  EXPECT_TRUE(memory.Reserve("b", 40).ok());
}

TEST(RequestMemoryTest, TicketReleasesItsBytesOnce) {
  RequestMemory memory({.in_all = 100, .of_caller = 100});
  {
    auto ticket = memory.Reserve("a", 50);
    ASSERT_TRUE(ticket.ok());
    const RequestMemory::Ticket moved = *std::move(ticket);
    EXPECT_EQ(memory.reserved(), 50);
  }
  EXPECT_EQ(memory.reserved(), 0);
}

}  // namespace
}  // namespace muster

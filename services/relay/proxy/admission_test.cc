#include "services/relay/proxy/admission.h"

#include <gtest/gtest.h>

#include <vector>

#include "services/common/base/error.h"

namespace muster {
namespace {

TEST(AdmissionTest, CallsAreLimitedInAllAndForEachCaller) {
  Admission admission({.calls = 3, .calls_of_one = 2, .bytes = 100, .bytes_of_one = 100});
  const auto first = admission.Enter("a", 10);
  auto second = admission.Enter("a", 10);
  EXPECT_EQ(ReasonOf(admission.Enter("a", 10).status()), "OVERLOADED");
  EXPECT_EQ(ReasonOf(admission.Enter("b", 81).status()), "OVERLOADED");
  const auto third = admission.Enter("b", 80);
  EXPECT_EQ(ReasonOf(admission.Enter("c", 0).status()), "OVERLOADED");
  EXPECT_EQ(admission.refused(), 3);
  second->reset();
  EXPECT_TRUE(admission.Enter("a", 10).ok());
}

TEST(AdmissionTest, RelayUsesUpToHalfOfAllCalls) {
  Admission admission({.calls = 6, .calls_of_one = 1, .bytes = 10, .bytes_of_one = 10});
  std::vector<Admission::Ticket> calls;
  for (int i = 0; i < 3; ++i) calls.push_back(admission.Enter("r", 0, /*is_relay=*/true).value());
  EXPECT_EQ(ReasonOf(admission.Enter("r", 0, /*is_relay=*/true).status()), "OVERLOADED");
  EXPECT_TRUE(admission.Enter("a", 0).ok());
}

TEST(AdmissionTest, MessagesOfOneCallerLeaveRoomForThoseOfOthers) {
  Admission admission({.calls = 9, .calls_of_one = 9, .bytes = 100, .bytes_of_one = 20});
  auto first = admission.Enter("a", 15);
  EXPECT_EQ(ReasonOf(admission.Enter("a", 6).status()), "OVERLOADED");
  const auto second = admission.Enter("a", 5);
  EXPECT_TRUE(second.ok());
  const auto other = admission.Enter("b", 20);
  EXPECT_TRUE(other.ok());
  EXPECT_EQ(ReasonOf(admission.Enter("r", 51, /*is_relay=*/true).status()), "OVERLOADED");
  const auto relay = admission.Enter("r", 50, /*is_relay=*/true);
  EXPECT_TRUE(relay.ok());
  first->reset();
  EXPECT_TRUE(admission.Enter("a", 10).ok());
}

TEST(AdmissionTest, ReleasedCallIsNotCounted) {
  Admission admission({.calls = 1, .calls_of_one = 1, .bytes = 10, .bytes_of_one = 10});
  auto first = admission.Enter("a", 10);
  Admission::Release(*first);
  Admission::Release(*first);
  EXPECT_EQ(admission.calls(), 0);
  const auto second = admission.Enter("a", 10);
  EXPECT_TRUE(second.ok());
  first->reset();
  EXPECT_EQ(admission.calls(), 1);
}

}  // namespace
}  // namespace muster

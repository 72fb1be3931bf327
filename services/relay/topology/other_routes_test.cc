#include "services/relay/topology/other_routes.h"

#include <gtest/gtest.h>

#include <string>

#include "services/relay/testing/recorded_link.h"

namespace muster {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'750'000'000);

// A route to n1 with a statement that was signed this many seconds after kNow.
OtherRoutes::Route Route(const std::string& child, int s = 0, uint64_t listing = 1) {
  return {child, listing, AttachedEntry("n1", child, kNow + absl::Seconds(s))};
}

TEST(OtherRoutesTest, RouteWithTheLatestStatementIsTakenFirst) {
  OtherRoutes routes;
  routes.Add(Route("r2", 5));
  routes.Add(Route("r3", 7));
  routes.Add(Route("r4", 6));
  for (const char* child : {"r3", "r4", "r2"}) {
    EXPECT_EQ(routes.DequeueLatest("n1", kNow).value().child, child);
  }
  EXPECT_FALSE(routes.DequeueLatest("n1", kNow));
  EXPECT_EQ(routes.size(), 0u);
}

TEST(OtherRoutesTest, ExpiredRoutesAreRemoved) {
  OtherRoutes routes;
  routes.Add(Route("r2"));
  EXPECT_FALSE(routes.DequeueLatest("n1", kNow + absl::Hours(1) + absl::Seconds(1)));
  EXPECT_EQ(routes.size(), 0u);
}

TEST(OtherRoutesTest, ChildHasOneRouteToANode) {
  OtherRoutes routes;
  routes.Add(Route("r2"));
  routes.Add(Route("r2"));
  routes.Remove("n1", "r2");
  EXPECT_EQ(routes.size(), 0u);
}

TEST(OtherRoutesTest, OldestRouteBeyondTheLimitIsRemoved) {
  OtherRoutes routes;
  for (size_t i = 0; i <= OtherRoutes::kMaxRoutes; ++i) routes.Add(Route(std::to_string(i)));
  std::string children;
  while (const auto route = routes.DequeueLatest("n1", kNow)) children += route->child;
  EXPECT_EQ(children, "1234");
}

TEST(OtherRoutesTest, ListOfAChildWithdrawsItsOlderRoutes) {
  OtherRoutes routes;
  routes.Add(Route("r2", 0, 1));
  routes.Add(Route("r3", 0, 1));
  routes.RemoveUnlisted("r2", 2);
  EXPECT_EQ(routes.DequeueLatest("n1", kNow).value().child, "r3");
  EXPECT_FALSE(routes.DequeueLatest("n1", kNow));
}

TEST(OtherRoutesTest, ChildThatLeavesHasNoRoutes) {
  OtherRoutes routes;
  routes.Add(Route("r2"));
  routes.Add(Route("r3"));
  routes.RemoveChild("r3");
  EXPECT_EQ(routes.DequeueLatest("n1", kNow).value().child, "r2");
}

}  // namespace
}  // namespace muster

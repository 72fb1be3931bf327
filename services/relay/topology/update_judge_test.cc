#include "services/relay/topology/update_judge.h"

#include <gtest/gtest.h>

#include <string>

#include "services/relay/testing/recorded_link.h"

namespace muster {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'750'000'000);

// The node n1 attached to `relay`, with a statement that was signed at `when`.
TopologyEntry Attached(absl::Time when = kNow, const std::string& relay = "r2") {
  return AttachedEntry("n1", relay, when);
}

TopologyEntry Detached(bool with_statement = true) {
  TopologyEntry entry = Attached();
  entry.attached = false;
  if (!with_statement) entry.statement = nullptr;
  return entry;
}

// Judges a report of r2.
UpdateEffect Judge(const TopologyEntry& reported, const KnownSubject& known,
                   bool first_list = false) {
  return JudgeUpdate(reported, known, "r2", first_list);
}

TEST(UpdateJudgeTest, UnknownAttachedEntryIsBelieved) {
  EXPECT_EQ(Judge(Attached(), {}), UpdateEffect::kAttach);
}

TEST(UpdateJudgeTest, UnknownDetachedEntryIsBelievedInTheFirstListWithAStatement) {
  EXPECT_EQ(Judge(Detached(), {}, /*first_list=*/true), UpdateEffect::kAdd);
  EXPECT_EQ(Judge(Detached(), {}, /*first_list=*/false), UpdateEffect::kNone);
  EXPECT_EQ(Judge(Detached(/*with_statement=*/false), {}, /*first_list=*/true),
            UpdateEffect::kNone);
}

TEST(UpdateJudgeTest, StreamToThisRelayIsNewerThanAReportWithTheSameStatement) {
  const TopologyEntry child = Attached(kNow, "r1");
  const KnownSubject known = {&child, "n1", /*has_stream=*/true};
  EXPECT_EQ(Judge(Detached(), known), UpdateEffect::kNone);
  EXPECT_EQ(Judge(Attached(kNow), known), UpdateEffect::kNone);
  EXPECT_EQ(Judge(Attached(kNow + absl::Seconds(1)), known), UpdateEffect::kTakeOver);
}

TEST(UpdateJudgeTest, DetachedEntryIsBelievedFromTheChildOfItsRoute) {
  const TopologyEntry attached = Attached();
  EXPECT_EQ(Judge(Detached(), {&attached, "r2"}), UpdateEffect::kDetach);
  EXPECT_EQ(Judge(Detached(), {&attached, "r3"}), UpdateEffect::kNone);
  const TopologyEntry detached = Detached();
  EXPECT_EQ(Judge(Detached(), {&detached, ""}), UpdateEffect::kDetach);
}

TEST(UpdateJudgeTest, ReportOfAFormerParentIsOlderThanTheRoute) {
  const TopologyEntry moved = Attached(kNow, "r3");
  const KnownSubject known = {&moved, "r3"};
  EXPECT_EQ(Judge(Attached(kNow - absl::Seconds(61)), known), UpdateEffect::kNone);
  EXPECT_EQ(Judge(Attached(kNow - absl::Seconds(60)), known), UpdateEffect::kAttach)
      << "the statement for the new parent may be signed shortly before the last one for the "
         "former";
}

TEST(UpdateJudgeTest, OlderStatementIsBelievedOnTheSameRouteAndForADetachedNode) {
  const TopologyEntry attached = Attached(kNow);
  EXPECT_EQ(Judge(Attached(kNow - absl::Hours(1)), {&attached, "r2"}), UpdateEffect::kAttach);
  const TopologyEntry detached = Detached();
  EXPECT_EQ(Judge(Attached(kNow - absl::Hours(1)), {&detached, ""}), UpdateEffect::kAttach);
}

}  // namespace
}  // namespace muster

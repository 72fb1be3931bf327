#include "services/relay/jobs/record_filter.h"

#include <gtest/gtest.h>

#include <memory>

#include "services/common/base/fake_clock.h"
#include "services/relay/testing/recorded_link.h"

namespace muster {
namespace {

TEST(RecordFilterTest, RecordsOfNodesOfOtherRelaysAreRemovedAndCounted) {
  FakeClock clock;
  Topology topology{{.name = "root"}, clock};
  for (const char* relay : {"r1", "r2"}) {
    ASSERT_TRUE(topology
                    .Attach(AttachedEntry(relay, "root", clock.Now(), true),
                            std::make_shared<RecordedLink>())
                    .ok());
  }
  ASSERT_TRUE(topology.ApplyUpdate("r1", {AttachedEntry("n1", "r1", clock.Now())}, {}, true).ok());
  ASSERT_TRUE(topology.ApplyUpdate("r2", {AttachedEntry("n2", "r2", clock.Now())}, {}, true).ok());
  v1::JobRecords records;
  for (const char* node : {"n2", "n1", "n9", "n1"}) records.add_records()->set_node(node);
  records.mutable_records(3)->set_sequence(2);
  RecordFilter filter(topology);
  filter.Apply("r1", &records);
  ASSERT_EQ(records.records_size(), 2);
  for (const v1::JobRecord& record : records.records()) EXPECT_EQ(record.node(), "n1");
  EXPECT_EQ(records.records(1).sequence(), 2);
  EXPECT_EQ(filter.removed(), 2);
}

TEST(RecordFilterTest, RecordOfANodeThatHasJustDetachedIsKept) {
  FakeClock clock;
  Topology topology{{.name = "root"}, clock};
  ASSERT_TRUE(
      topology
          .Attach(AttachedEntry("r1", "root", clock.Now(), true), std::make_shared<RecordedLink>())
          .ok());
  ASSERT_TRUE(topology.ApplyUpdate("r1", {AttachedEntry("n1", "r1", clock.Now())}, {}, true).ok());
  TopologyEntry detached = AttachedEntry("n1", "r1", clock.Now());
  detached.attached = false;
  ASSERT_TRUE(topology.ApplyUpdate("r1", {detached}, {}, false).ok());
  ASSERT_FALSE(topology.Find("n1")->attached);
  v1::JobRecords records;
  records.add_records()->set_node("n1");
  RecordFilter filter(topology);
  filter.Apply("r1", &records);
  EXPECT_EQ(records.records_size(), 1);
}

}  // namespace
}  // namespace muster

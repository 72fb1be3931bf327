#include "services/relay/topology/topology_changes.h"

#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/relay/testing/recorded_link.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kNow = absl::FromUnixSeconds(1'750'000'000);

class TopologyChangesTest : public ::testing::Test {
 protected:
  void Add(const std::string& name, const std::string& relay = "r1", bool is_relay = false) {
    entries_[name] = AttachedEntry(name, relay, kNow, is_relay);
    changes_.Add(entries_[name]);
  }
  void Remove(const std::string& name) {
    changes_.AddRemoved(entries_.at(name));
    entries_.erase(name);
  }
  // Returns the changes, as "+name", "-name" if it is detached, and "removed URI".
  std::vector<std::string> Dequeue(size_t limit = 100) {
    const auto update =
        changes_.Dequeue(limit, [this](const std::string& name) -> const TopologyEntry* {
          const auto entry = entries_.find(name);
          return entry == entries_.end() ? nullptr : &entry->second;
        });
    std::vector<std::string> texts;
    for (const auto& entry : update.descendants()) {
      const std::string& uri = entry.statement().child();
      texts.push_back((entry.attached() ? "+" : "-") + uri.substr(uri.rfind('/') + 1));
    }
    for (const std::string& uri : update.forgotten_uris()) texts.push_back("removed " + uri);
    return texts;
  }

  std::map<std::string, TopologyEntry> entries_;
  TopologyChanges changes_;
};

TEST_F(TopologyChangesTest, EntryIsReturnedOnceAsItIsNow) {
  Add("n1");
  Add("n1");
  entries_["n1"].attached = false;
  EXPECT_FALSE(changes_.empty());
  EXPECT_THAT(Dequeue(), ElementsAre("-n1"));
  EXPECT_TRUE(changes_.empty());
  EXPECT_THAT(Dequeue(), IsEmpty());
}

TEST_F(TopologyChangesTest, RelaysPrecedeNodesAndFollowTheirOwnRelay) {
  Add("a-node", "r10");
  Add("r10", "r9", /*is_relay=*/true);
  Add("r9", "r1", /*is_relay=*/true);
  EXPECT_THAT(Dequeue(), ElementsAre("+r9", "+r10", "+a-node"));
}

TEST_F(TopologyChangesTest, RelaysInALoopAreReturned) {
  Add("r2", "r3", /*is_relay=*/true);
  Add("r3", "r2", /*is_relay=*/true);
  EXPECT_EQ(Dequeue().size(), 2u);
}

TEST_F(TopologyChangesTest, LinkOfAnAttachedEntryIsReturned) {
  for (const char* name : {"n1", "n2"}) {
    Add(name);
    entries_[name].link = "websocket";
  }
  entries_["n2"].attached = false;
  const auto update =
      changes_.Dequeue(100, [this](const std::string& name) { return &entries_.at(name); });
  ASSERT_EQ(update.descendants_size(), 2);
  EXPECT_EQ(update.descendants(0).link(), "websocket");
  EXPECT_EQ(update.descendants(1).link(), "");
}

TEST_F(TopologyChangesTest, RemovedEntryIsReturnedByItsUri) {
  Add("n1");
  Remove("n1");
  EXPECT_THAT(Dequeue(), ElementsAre("removed spiffe://fleet.test/node/n1"));
  EXPECT_TRUE(changes_.empty());
}

TEST_F(TopologyChangesTest, EntryThatIsBackIsNotReturnedAsRemoved) {
  Add("n1");
  Remove("n1");
  Add("n1");
  EXPECT_THAT(Dequeue(), ElementsAre("+n1"));
}

TEST_F(TopologyChangesTest, EntryThatNoLongerExistsIsSkipped) {
  Add("n1");
  entries_.clear();
  EXPECT_THAT(Dequeue(), IsEmpty());
}

TEST_F(TopologyChangesTest, LimitHoldsForBothKinds) {
  for (const char* name : {"n1", "n2", "n3", "n4", "n5"}) Add(name);
  for (const char* name : {"n1", "n2", "n3"}) Remove(name);
  EXPECT_EQ(Dequeue(2).size(), 4u);
  EXPECT_THAT(Dequeue(2), ElementsAre("removed spiffe://fleet.test/node/n3"));
  EXPECT_TRUE(changes_.empty());
}

}  // namespace
}  // namespace muster

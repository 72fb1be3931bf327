// The information of nodes about themselves.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "services/common/base/error.h"
#include "services/relay/testing/child_session_fixture.h"
#include "services/relay/testing/recorded_link.h"

namespace muster {
namespace {

v1::AttachRequest InfoOf(int64_t free_bytes) {
  v1::AttachRequest message;
  v1::NodeInfo& info = *message.mutable_info();
  info.set_free_bytes(free_bytes);
  info.set_total_bytes(100);
  info.add_adapters()->set_name("docker");
  return message;
}

class NodeInfoTest : public testing::ChildSessionFixture {
 protected:
  int64_t FreeBytes(const std::string& node) const {
    const auto entry = topology_.Find(node);
    return entry && entry->info != nullptr ? entry->info->free_bytes() : -1;
  }
};

TEST_F(NodeInfoTest, LastInfoIsKnownAlsoAfterTheEndAndTheNextStart) {
  const testing::Child child = Attach(NodeIdentity{"n1"});
  EXPECT_EQ(FreeBytes("n1"), -1);
  child.session->HandleMessage(InfoOf(7));
  EXPECT_EQ(FreeBytes("n1"), 7);
  child.session->HandleMessage(InfoOf(6));
  child.session->HandleMessage(InfoOf(8));
  EXPECT_EQ(child.stream->reads, 3);
  child.session->Tick();
  EXPECT_EQ(FreeBytes("n1"), 7) << "a flood changes it every 10 s";
  clock_.Advance(absl::Seconds(10));
  child.session->Tick();
  EXPECT_EQ(FreeBytes("n1"), 8);
  child.session->HandleEnd();
  EXPECT_EQ(FreeBytes("n1"), 8);
  const testing::Child next = Attach(NodeIdentity{"n1"});
  EXPECT_EQ(FreeBytes("n1"), 8);
  child.session->HandleMessage(InfoOf(9));  // the stream that it replaced
  EXPECT_EQ(FreeBytes("n1"), 8);
}

TEST_F(NodeInfoTest, InfoThatIsTooLargeOrMakesNoSenseEndsTheStream) {
  v1::AttachRequest large = InfoOf(1);
  large.mutable_info()->set_version(std::string(1024, 'x'));
  v1::AttachRequest many = InfoOf(1);
  for (int i = 0; i < 4; ++i) many.mutable_info()->add_adapters();
  v1::AttachRequest twice = InfoOf(1);
  twice.mutable_info()->add_adapters()->set_name("docker");
  for (const v1::AttachRequest& message : {large, many, twice, InfoOf(101), InfoOf(-1)}) {
    const testing::Child child = Attach(NodeIdentity{"n1"});
    child.session->HandleMessage(message);
    ASSERT_TRUE(child.stream->end);
    EXPECT_EQ(ReasonOf(*child.stream->end), "INVALID_ATTACHMENT");
    EXPECT_EQ(FreeBytes("n1"), -1);
  }
}

TEST_F(NodeInfoTest, ParentOfTheRelayKnowsIt) {
  FakeClock clock;
  Topology relay({.name = "r1", .is_root = false}, clock);
  const auto link = std::make_shared<RecordedLink>();
  ASSERT_TRUE(relay.Attach(AttachedEntry("n1", "r1", clock.Now()), link).ok());
  relay.DequeueChanges(10, /*all=*/false);
  auto info = std::make_shared<v1::NodeInfo>();
  info->set_free_bytes(5);
  info->set_total_bytes(10);
  relay.SetInfo("n1", link.get(), info);
  const auto update = relay.DequeueChanges(10, /*all=*/false);
  ASSERT_EQ(update.descendants_size(), 1);
  EXPECT_EQ(update.descendants(0).info().free_bytes(), 5);

  const testing::Child child = Attach(ServiceIdentity{ServiceRole::kRelay, "r1"}, true);
  const testing::Child node = Connect(NodeIdentity{"n1"});
  v1::AttachRequest message;
  auto& descendant = *message.mutable_topology()->add_descendants();
  *descendant.mutable_statement() =
      SignAttachStatement(*PrivateKey::FromPem(node.credential.key_pem), node.credential.chain_pem,
                          node.uri, testing::UriOf(ServiceIdentity{ServiceRole::kRelay, "r1"}),
                          std::string(32, 'r'), clock_.Now() + absl::Minutes(30))
          .value();
  descendant.set_relay("r1");
  descendant.set_attached(true);
  descendant.mutable_info()->set_free_bytes(5);
  descendant.mutable_info()->set_total_bytes(10);
  Deliver(child, message);
  EXPECT_EQ(FreeBytes("n1"), 5);
  descendant.mutable_info()->set_version(std::string(1024, 'x'));
  descendant.mutable_info()->set_free_bytes(6);
  Deliver(child, message);
  EXPECT_EQ(FreeBytes("n1"), 5);  // the descendant is ignored, and its branch stays
  EXPECT_FALSE(child.stream->end);
}

}  // namespace
}  // namespace muster

// A ParentLink whose parents are played by the test.
#ifndef MUSTER_SERVICES_RELAY_TESTING_PARENT_LINK_FIXTURE_H_
#define MUSTER_SERVICES_RELAY_TESTING_PARENT_LINK_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/attach/fake_parent.h"
#include "services/common/base/executor.h"
#include "services/common/base/fake_clock.h"
#include "services/common/rpc/call_canceller.h"
#include "services/relay/testing/recorded_link.h"
#include "services/relay/upstream/parent_link.h"
#include "testing/fixtures/test_commands.h"

namespace muster {

inline constexpr char kParentLinkFleet[] = "fleet.test";

// Returns "hello", "topology +n1 -n2 complete" or "records n1 n2".
inline std::string TextOf(const v1::AttachRequest& message) {
  std::string text;
  switch (message.message_case()) {
    case v1::AttachRequest::kHello:
      return "hello";
    case v1::AttachRequest::kTopology:
      text = "topology";
      for (const auto& entry : message.topology().descendants()) {
        const std::string& uri = entry.statement().child();
        absl::StrAppend(&text, entry.attached() ? " +" : " -", uri.substr(uri.rfind('/') + 1));
      }
      return text + (message.topology().complete() ? " complete" : "");
    case v1::AttachRequest::kRecords:
      text = "records";
      for (const v1::JobRecord& record : message.records().records()) {
        absl::StrAppend(&text, " ", record.node());
      }
      return text;
    default:
      return "?";
  }
}

// The link of the relay r2 to parents that the test plays.
class ParentLinkFixture : public ::testing::Test {
 protected:
  void Start(const std::vector<uint16_t>& ports = {1}) {
    AttachClientOptions options;
    for (const uint16_t port : ports) options.targets.push_back({"relay", port});
    options.return_after = absl::Seconds(1);
    options.uri = "spiffe://fleet.test/service/relay/r2";
    options.is_relay = true;
    link_ = std::make_unique<ParentLink>(
        std::move(options),
        ParentLink::Parts{topology_,
                          trust_,
                          dispatcher_,
                          {clock_, clock_, executor_},
                          commands_.authority().certificate()},
        absl::Seconds(60), [this](const v1::AttachResponse&) { ++shares_; },
        std::unique_ptr<ParentConnector>(connector_));
    executor_.AwaitIdle();
  }
  void Advance(absl::Duration by) {
    clock_.Advance(by);
    executor_.AwaitIdle();
  }
  // Advances to the next attempt to connect, and not to the end of its patience.
  void AwaitRetry() {
    const size_t before = connector_->connections(1);
    for (int second = 0; second < 60 && connector_->connections(1) == before; ++second) {
      Advance(absl::Seconds(1));
    }
    ASSERT_GT(connector_->connections(1), before);
  }
  void Accept(uint16_t port = 1, const std::vector<std::string>& path = {"root"}) {
    connector_->at(port).Greet();
    connector_->at(port).Welcome(/*connected=*/true, path);
    executor_.AwaitIdle();
  }
  void StartAccepted() {
    Start();
    Accept();
    EXPECT_THAT(Sent(), ::testing::ElementsAre("hello"));
  }
  void End(uint16_t port = 1) {
    connector_->at(port).End(absl::UnavailableError("gone"));
    executor_.AwaitIdle();
  }
  void Deliver(v1::AttachResponse message) {
    connector_->at(1).Deliver(std::move(message));
    executor_.AwaitIdle();
  }
  // Returns what a parent received since the last call.
  std::vector<std::string> Sent(uint16_t port = 1) {
    std::vector<std::string> texts;
    for (const v1::AttachRequest& message : connector_->at(port).TakeSent()) {
      texts.push_back(TextOf(message));
    }
    return texts;
  }

  std::shared_ptr<RecordedLink> AttachChild(const std::string& node) {
    auto child = std::make_shared<RecordedLink>();
    EXPECT_TRUE(topology_.Attach(AttachedEntry(node, "r2", clock_.Now()), child).ok());
    return child;
  }
  // A child delivers a record.
  void Receive(const std::string& node, size_t bytes = 1) {
    v1::JobRecords records;
    v1::JobRecord& record = *records.add_records();
    record.set_node(node);
    record.mutable_output()->set_data(std::string(bytes, 'x'));
    link_->Receive(std::move(records), [this] { ++done_; });
  }

  FakeClock clock_;
  Executor executor_{{.name = "background", .threads = 1}};
  Topology topology_{{.name = "r2", .is_root = false}, clock_};
  CommandDispatcher dispatcher_{topology_, clock_};
  CallCanceller canceller_;
  Trust trust_{kParentLinkFleet, [] { return std::vector<Certificate>(); }, topology_, canceller_,
               clock_};
  TestCommands commands_;
  int shares_ = 0;  // messages about shared files
  int done_ = 0;    // messages of children that are sent or dropped
  FakeConnector* connector_ = new FakeConnector(clock_);  // owned by link_
  std::unique_ptr<ParentLink> link_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_TESTING_PARENT_LINK_FIXTURE_H_

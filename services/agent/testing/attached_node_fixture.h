// A node's attachment against relays that the test plays, over real TLS, with real commands.
#ifndef MUSTER_SERVICES_AGENT_TESTING_ATTACHED_NODE_FIXTURE_H_
#define MUSTER_SERVICES_AGENT_TESTING_ATTACHED_NODE_FIXTURE_H_

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "services/agent/attach/attached_node.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/base/timers.h"
#include "testing/fixtures/fake_relay.h"
#include "testing/fixtures/test_commands.h"

namespace muster {

inline constexpr char kNode[] = "n1";

// Records what it is asked for. Offers can be blocked, which blocks the thread of the node.
class RecordingCollections final : public Collections {
 public:
  void SetBlocked(bool value) {
    MutexLock lock(mutex);
    blocked = value;
    changed.NotifyAll();
  }

  // Waits until the condition holds; it is called with the mutex held. Returns false after a
  // minute.
  template <typename Condition>
  bool Await(Condition condition) {
    MutexLock lock(mutex);
    return changed.WaitFor(mutex, absl::Minutes(1), condition);
  }

  void Offer(const v1::CollectionOffer& offer, const std::string& target) override {
    MutexLock lock(mutex);
    offers.push_back(offer.run() + " at " + target);
    changed.NotifyAll();
    while (blocked) changed.Wait(mutex);
  }
  void OnAttached(const std::string&) override {
    MutexLock lock(mutex);
    ++attachments;
    changed.NotifyAll();
  }
  void End(const v1::CollectionEnded& ended) override {
    MutexLock lock(mutex);
    ends.push_back(ended.run());
    changed.NotifyAll();
  }

  Mutex mutex;
  CondVar changed;
  std::vector<std::string> offers ABSL_GUARDED_BY(mutex);
  std::vector<std::string> ends ABSL_GUARDED_BY(mutex);
  int attachments ABSL_GUARDED_BY(mutex) = 0;
  bool blocked ABSL_GUARDED_BY(mutex) = false;  // offers
};

class AttachedNodeTest : public ::testing::Test {
 protected:
  AttachedNodeTest() {
    for (FakeRelay* relay : {&relay_, &other_}) {
      relay->Start();
      relay->Stop();  // its port is known
    }
    tree_.WriteNodeFolder(folder_, kNode, {relay_.target(), other_.target()},
                          commands_.authority().certificate().ToPem());
    std::ofstream(folder_ + "/policy.yaml") << "commands: [{argv: ['**']}]";
    std::filesystem::permissions(folder_ + "/policy.yaml", std::filesystem::perms(0600));
    relay_.Start();
  }

  void Begin() {
    AttachedNodeOptions options{NodeFolder::Load(folder_).value(), folder_ + "/tls", 16};
    options.first_back_off = absl::Milliseconds(1);
    options.return_after = absl::Milliseconds(10);
    node_ =
        AttachedNode::Start(std::move(options), collections_, {SystemClock(), *timers_, executor_})
            .value();
  }
  void End() { node_.reset(); }

  v1::Command Send(FakeRelay& relay, std::vector<std::string> argv) {
    const v1::Command command = TestCommands::Exec(std::move(argv));
    v1::AttachResponse message;
    *message.mutable_command() = commands_.ForNode(command, kNode);
    EXPECT_TRUE(relay.Send(message));
    return command;
  }

  static bool HasFinal(const ReceivedJob& job) { return job.final.has_value(); }

  const std::string folder_ = ::testing::TempDir() + "/attached";
  TestIssuer tree_;
  TestCommands commands_;
  FakeRelay relay_{tree_, "r1"};
  FakeRelay other_{tree_, "r2"};
  RecordingCollections collections_;
  const std::unique_ptr<TimerService> timers_ = MakeTimerService(/*max_timers=*/16);
  Executor executor_{{.name = "background", .threads = 1}};
  std::unique_ptr<AttachedNode> node_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_TESTING_ATTACHED_NODE_FIXTURE_H_

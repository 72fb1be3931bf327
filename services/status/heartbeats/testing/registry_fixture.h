#ifndef MUSTER_SERVICES_STATUS_HEARTBEATS_TESTING_REGISTRY_FIXTURE_H_
#define MUSTER_SERVICES_STATUS_HEARTBEATS_TESTING_REGISTRY_FIXTURE_H_

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/status_macros.h"
#include "services/status/heartbeats/registry.h"

// A registry on a fake clock, with a fake kernel.
namespace muster::testing {

class Listener : public HeartbeatListener {
 public:
  absl::Status HandleActivity(const v1::ResultKey&, const std::shared_ptr<const Sender>&,
                              const v1::Activity&) override {
    return absl::OkStatus();
  }
  void PresenceChanged(const std::shared_ptr<const Sender>& sender) override {
    seen.push_back(sender->presence());
  }
  std::vector<v1::Presence> seen;
};

class Journal : public NodeJournal {
 public:
  void AddEvent(const std::string& node, v1::NodeEvent event) override {
    details[node].push_back(event.detail());
  }
  size_t PutSenders(std::vector<SenderRecord> senders) override {
    senders.resize(std::min(senders.size(), capacity));
    for (SenderRecord& sender : senders) stored[sender.node] = sender;
    return senders.size();
  }
  size_t capacity = std::numeric_limits<size_t>::max();  // of one call
  std::map<std::string, SenderRecord> stored;
  std::map<std::string, std::vector<std::string>> details;
};

class Line : public SenderLink {
 public:
  void Probe() override { ++probes; }
  void End(const absl::Status& why) override { ended = why; }
  int probes = 0;
  absl::Status ended;
};

// Time passes in ticks of a second; the kernel says what the test wants.
class RegistryFixture : public ::testing::Test {
 protected:
  RegistryFixture() { Restart(); }

  void Restart(const std::vector<SenderRecord>& records = {}) {
    registry_.reset();
    metrics_ = std::make_unique<Metrics>();
    registry_ = std::make_unique<Registry>(
        options_, clock_, listener_, journal_,
        [this](const std::vector<TcpPeer>& peers) {
          std::vector<TcpState> states;
          if (!kernel_answers_) return states;
          for (const TcpPeer& peer : peers) states.push_back(states_[peer.port]);
          return states;
        },
        *metrics_);
    registry_->Restore(records);
  }

  struct Stream {
    std::shared_ptr<Line> line;
    Registry::StreamRef stream_ref;
    std::shared_ptr<const Sender> sender;
    int64_t sequence = 0;
  };

  absl::StatusOr<Stream> TryOpen(int node, const std::string& instance = "i1",
                                 absl::Duration uptime = absl::ZeroDuration(),
                                 const std::string& pair = "r/p") {
    Stream stream;
    stream.line = std::make_shared<Line>();
    TcpPeer peer;
    peer.port = static_cast<uint16_t>(node + 1);
    ASSIGN_OR_RETURN(auto stream_ref,
                     registry_->Open({absl::StrCat("spiffe://f/node/n", node),
                                      absl::StrCat("n", node), instance, "b", uptime, pair},
                                     {stream.line, peer}));
    stream.stream_ref = stream_ref;
    stream.sender = stream_ref.sender();
    return stream;
  }

  // A stream with one heartbeat.
  Stream Open(int node, const std::string& instance = "i1",
              absl::Duration uptime = absl::ZeroDuration(), const std::string& pair = "r/p") {
    auto stream = TryOpen(node, instance, uptime, pair);
    EXPECT_TRUE(stream.ok()) << stream.status();
    SendHeartbeat(*stream);
    return *std::move(stream);
  }

  Registry::Answer SendHeartbeat(Stream& stream) {
    return registry_->HandleHeartbeat(stream.stream_ref, ++stream.sequence, absl::ZeroDuration());
  }

  void Pass(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      clock_.Advance(absl::Seconds(1));
      registry_->Tick();
    }
  }

  // Time passes while these senders send a heartbeat every 10 s.
  void PassWithHeartbeats(int seconds, std::vector<Stream*> streams) {
    for (int i = 1; i <= seconds; ++i) {
      Pass(1);
      if (i % 10 != 0) continue;
      for (Stream* stream : streams) SendHeartbeat(*stream);
    }
  }

  RegistryOptions options_;
  FakeClock clock_;
  Listener listener_;
  Journal journal_;
  std::map<uint16_t, TcpState> states_;
  bool kernel_answers_ = true;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<Registry> registry_;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_STATUS_HEARTBEATS_TESTING_REGISTRY_FIXTURE_H_

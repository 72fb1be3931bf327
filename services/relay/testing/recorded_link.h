// The stream of a child that records its messages, for tests without connections.
#ifndef MUSTER_SERVICES_RELAY_TESTING_RECORDED_LINK_H_
#define MUSTER_SERVICES_RELAY_TESTING_RECORDED_LINK_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/relay/topology/topology.h"

namespace muster {

// Thread-safe.
class RecordedLink : public ChildLink {
 public:
  void Send(v1::AttachResponse message) override {
    MutexLock lock(mutex_);
    sent_.push_back(std::move(message));
  }
  void End(const absl::Status& why) override {
    MutexLock lock(mutex_);
    end_ = why;
  }
  void Tick() override {}

  std::vector<v1::AttachResponse> Take() {
    MutexLock lock(mutex_);
    return std::exchange(sent_, {});
  }
  absl::Status end() const {
    MutexLock lock(mutex_);
    return end_;
  }

 private:
  mutable Mutex mutex_;
  std::vector<v1::AttachResponse> sent_ ABSL_GUARDED_BY(mutex_);
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
};

// Calls a function, which is set before any message is sent, before it records the first message.
class HookedLink final : public RecordedLink {
 public:
  void Send(v1::AttachResponse message) override {
    if (const auto hook = std::exchange(before_first, nullptr)) hook();
    RecordedLink::Send(std::move(message));
  }

  std::function<void()> before_first;
};

// An entry as a stream makes it: attached to `relay` with a statement that lasts an hour.
inline TopologyEntry AttachedEntry(const std::string& name, const std::string& relay,
                                   absl::Time now, bool is_relay = false) {
  auto statement = std::make_shared<v1::AttachStatement>();
  statement->set_child("spiffe://fleet.test/" + std::string(is_relay ? "service/relay/" : "node/") +
                       name);
  statement->set_relay("spiffe://fleet.test/service/relay/" + relay);
  statement->mutable_expire_time()->set_seconds(absl::ToUnixSeconds(now + absl::Hours(1)));
  TopologyEntry entry;
  entry.name = name;
  entry.uri = statement->child();
  entry.is_relay = is_relay;
  entry.relay = relay;
  entry.attached = true;
  entry.since = now;
  entry.statement = std::move(statement);
  return entry;
}

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_TESTING_RECORDED_LINK_H_

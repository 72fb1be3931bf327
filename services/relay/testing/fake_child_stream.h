// The stream of a child for tests of its session without connections.
#ifndef MUSTER_SERVICES_RELAY_TESTING_FAKE_CHILD_STREAM_H_
#define MUSTER_SERVICES_RELAY_TESTING_FAKE_CHILD_STREAM_H_

#include <optional>
#include <utility>
#include <vector>

#include "services/relay/topology/child_session.h"

namespace muster::testing {

// Records what the session sends. Not thread-safe: the test waits for the tasks of the session.
class FakeChildStream final : public ChildStream {
 public:
  void ReadNext() override { ++reads; }
  Sent Send(v1::AttachResponse message) override {
    if (end) return Sent::kEnded;
    if (full) return Sent::kFull;
    sent.push_back(std::move(message));
    return Sent::kQueued;
  }
  void End(const absl::Status& why) override {
    if (!end) end = why;
  }
  void Cancel(const absl::Status& why) override {
    cancelled = true;
    End(why);
  }

  std::vector<v1::AttachResponse> TakeSent() { return std::exchange(sent, {}); }

  int reads = 0;
  bool full = false;
  bool cancelled = false;
  std::vector<v1::AttachResponse> sent;
  std::optional<absl::Status> end;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_RELAY_TESTING_FAKE_CHILD_STREAM_H_

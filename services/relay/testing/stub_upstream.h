#ifndef MUSTER_SERVICES_RELAY_TESTING_STUB_UPSTREAM_H_
#define MUSTER_SERVICES_RELAY_TESTING_STUB_UPSTREAM_H_

#include <grpcpp/channel.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "services/common/base/mutex.h"
#include "services/relay/upstream/upstream.h"

namespace muster::testing {

// An upstream for units that only ask whether it is connected, or for the channel to the status
// service. It permits every caller. Thread-safe.
class StubUpstream : public Upstream {
 public:
  void SetConnected(bool connected) {
    MutexLock lock(mutex_);
    connected_ = connected;
    if (changed_) changed_();
  }

  void SetStatus(std::shared_ptr<grpc::Channel> status) {
    MutexLock lock(mutex_);
    status_ = std::move(status);
  }

  std::shared_ptr<grpc::Channel> Results() override { return nullptr; }
  std::shared_ptr<grpc::Channel> Status() override {
    MutexLock lock(mutex_);
    return status_;
  }
  std::shared_ptr<grpc::Channel> Joining() override { return nullptr; }
  std::shared_ptr<grpc::Channel> Jobs() override { return nullptr; }
  absl::Status JobsUnreachable() const override { return absl::UnavailableError("no jobs"); }
  bool connected() const override {
    MutexLock lock(mutex_);
    return connected_;
  }
  std::vector<std::string> ended_runs() const override {
    MutexLock lock(mutex_);
    return ended_runs_;
  }
  void SetEndedRuns(std::vector<std::string> runs) {
    MutexLock lock(mutex_);
    ended_runs_ = std::move(runs);
  }
  absl::Status MayAttach() const override { return may_attach; }
  std::shared_ptr<void> OnChange(std::function<void()> changed) override {
    MutexLock lock(mutex_);
    changed_ = std::move(changed);
    return {this, [this](void*) {
              MutexLock held(mutex_);
              changed_ = nullptr;
            }};
  }
  absl::StatusOr<std::string> StatementFor(const Caller&) override { return "statement"; }
  absl::Status CheckChildRelay(const Caller&) override { return absl::OkStatus(); }
  absl::StatusOr<std::string> StatementOfChildRelay(const Caller&) override { return "statement"; }

  absl::Status may_attach;  // set before the first call

 private:
  mutable Mutex mutex_;
  std::shared_ptr<grpc::Channel> status_ ABSL_GUARDED_BY(mutex_);
  bool connected_ ABSL_GUARDED_BY(mutex_) = true;
  std::vector<std::string> ended_runs_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> changed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_RELAY_TESTING_STUB_UPSTREAM_H_

// The forwarding part of a relay over real mutual TLS, upstream of it a real aggregator.
#ifndef MUSTER_SERVICES_RELAY_TESTING_PROXY_FIXTURE_H_
#define MUSTER_SERVICES_RELAY_TESTING_PROXY_FIXTURE_H_

#include <grpcpp/channel.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "services/common/base/executor.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/metrics.h"
#include "services/common/base/mutex.h"
#include "services/common/base/timers.h"
#include "services/common/identity/verified_chains.h"
#include "services/common/rpc/caller.h"
#include "services/common/rpc/open_streams.h"
#include "services/common/rpc/server.h"
#include "services/relay/proxy/forwarding.h"
#include "services/relay/upstream/upstream.h"
#include "testing/fixtures/test_fleet.h"

namespace muster::testing {

// An upstream that a test connects and disconnects. Thread-safe.
class FakeUpstream : public Upstream {
 public:
  explicit FakeUpstream(TestIdentity relay) : relay_(std::move(relay)) {}

  // Connects to the jobs service, or to another relay.
  void ConnectJobs(std::shared_ptr<grpc::Channel> jobs);
  // Connects to an aggregator and a status service, or to another relay.
  void Connect(std::shared_ptr<grpc::Channel> results, std::shared_ptr<grpc::Channel> status);
  void Cut();
  // Adds an attached node or relay with its statement.
  void Attach(const std::string& name, const TestIdentity& identity);
  void Detach(const std::string& node);

  std::shared_ptr<grpc::Channel> Results() override;
  std::shared_ptr<grpc::Channel> Status() override;
  std::shared_ptr<grpc::Channel> Joining() override { return Results(); }
  std::shared_ptr<grpc::Channel> Jobs() override;
  absl::Status JobsUnreachable() const override;
  bool connected() const override;
  std::shared_ptr<void> OnChange(std::function<void()> changed) override;
  absl::StatusOr<std::string> StatementFor(const Caller& caller) override;
  absl::Status CheckChildRelay(const Caller&) override { return absl::OkStatus(); }
  absl::StatusOr<std::string> StatementOfChildRelay(const Caller& caller) override;

 private:
  void Changed();
  absl::StatusOr<std::string> FindStatement(const std::string& name) const;

  const TestIdentity relay_;
  mutable Mutex mutex_;
  std::shared_ptr<grpc::Channel> results_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<grpc::Channel> status_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<grpc::Channel> jobs_ ABSL_GUARDED_BY(mutex_);
  bool connected_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, std::string> statements_ ABSL_GUARDED_BY(mutex_);
  std::map<int, std::function<void()>> watchers_ ABSL_GUARDED_BY(mutex_);
  int next_watcher_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Not thread-safe.
class ProxyFixture {
 public:
  explicit ProxyFixture(TestFleet& fleet, const std::string& name = "r1");
  ~ProxyFixture();

  // Starts the forwarding part, or restarts it with the same spool, upstream and metrics.
  void Start();
  // Waits for calls in progress for at most `drain`.
  void Stop(absl::Duration drain = absl::ZeroDuration());

  // Connects the upstream to the fleet's aggregator at its present address; `status` may be null.
  void ConnectUp(std::shared_ptr<grpc::Channel> status = nullptr);

  // Returns a channel to the relay for an attached node.
  std::shared_ptr<grpc::Channel> Connect(const TestIdentity& identity) const;
  std::shared_ptr<grpc::Channel> ConnectToJoin() const;
  std::string target() const;
  std::string spool_folder() const { return folder_ + "/spool"; }
  const TestIdentity& identity() const { return identity_; }
  FakeUpstream& upstream() { return upstream_; }
  Metrics& metrics() { return *metrics_; }
  // The time of the limits on first messages.
  FakeClock& stream_clock() { return stream_clock_; }

  ForwardingConfig config;

 private:
  TestFleet& fleet_;
  const std::string name_;
  const std::string folder_;
  const TestIdentity identity_;
  FakeUpstream upstream_;
  FakeClock stream_clock_;
  Executor background_{{"background", 2, 64}};
  const std::unique_ptr<TimerService> timers_ = MakeTimerService(64);
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<OpenStreams> streams_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<RpcMetrics> rpc_metrics_;
  std::unique_ptr<VerifiedChains> chains_;
  std::unique_ptr<CallerResolver> callers_;
  std::unique_ptr<CallCanceller> canceller_;
  std::unique_ptr<Forwarding> forwarding_;
  std::unique_ptr<RpcServer> server_;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_RELAY_TESTING_PROXY_FIXTURE_H_

// A status service for tests of this folder and the agent's: real TLS, in memory.
#ifndef MUSTER_SERVICES_CLIENT_TEST_STATUS_PEER_H_
#define MUSTER_SERVICES_CLIENT_TEST_STATUS_PEER_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/v1/heartbeats.grpc.pb.h"
#include "muster/v1/status.grpc.pb.h"
#include "services/client/test_peer.h"
#include "services/common/base/mutex.h"

namespace muster::client {

// Accepts heartbeats and progress, and records them. Thread-safe.
class TestStatusPeer {
 public:
  explicit TestStatusPeer(const TestFleet& fleet) : fleet_(fleet) {}
  ~TestStatusPeer() { Stop(); }

  // Starts listening, on the previous port if there was one.
  void Start();
  // Cancels every connection and stops listening.
  void Stop();
  std::string target() const;

  // Requests a heartbeat on every stream.
  void Probe();
  // Ends every stream, as a restart does.
  void Cut();

  std::vector<v1::StreamHeartbeatsRequest> heartbeats() const;
  std::vector<v1::ReportProgressRequest> reports() const;
  // Returns true if a heartbeat matched.
  bool Heard(const std::function<bool(const v1::Activity&)>& what) const;
  bool HeardPhase(v1::Phase phase) const;
  bool SaidGoodbye() const;

  bool serve_heartbeats = true;                   // false: as an earlier version; set before Start
  std::function<absl::Status()> judge_heartbeat;  // set before Start
  std::function<absl::Status()> judge_progress;   // set before Start
  std::atomic<int64_t> interval_ms{3'600'000};
  std::atomic<int64_t> clock_ahead_ms{0};
  std::atomic<int> streams{0};  // the number of opened streams

 private:
  using Stream =
      grpc::ServerReaderWriter<v1::StreamHeartbeatsResponse, v1::StreamHeartbeatsRequest>;

  class HeartbeatHandler final : public v1::HeartbeatService::Service {
   public:
    explicit HeartbeatHandler(TestStatusPeer& peer) : peer_(peer) {}
    grpc::Status StreamHeartbeats(grpc::ServerContext* context, Stream* stream) override;

   private:
    TestStatusPeer& peer_;
  };

  class Reports final : public v1::StatusService::Service {
   public:
    explicit Reports(TestStatusPeer& peer) : peer_(peer) {}
    grpc::Status ReportProgress(grpc::ServerContext*, const v1::ReportProgressRequest* request,
                                v1::ReportProgressResponse*) override;

   private:
    TestStatusPeer& peer_;
  };

  v1::StreamHeartbeatsResponse AnswerTo(const v1::StreamHeartbeatsRequest& heartbeat) const;

  const TestFleet fleet_;
  HeartbeatHandler heartbeat_service_{*this};
  Reports report_service_{*this};
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
  mutable Mutex mutex_;
  std::vector<v1::StreamHeartbeatsRequest> heartbeats_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::ReportProgressRequest> reports_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<grpc::ServerContext*, Stream*>> live_streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_TEST_STATUS_PEER_H_

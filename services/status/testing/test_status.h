// A real status service over real mutual TLS on a free port, beside a real aggregator, for tests.
#ifndef MUSTER_SERVICES_STATUS_TESTING_TEST_STATUS_H_
#define MUSTER_SERVICES_STATUS_TESTING_TEST_STATUS_H_

#include <grpcpp/channel.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "muster/v1/status.pb.h"
#include "services/aggregator/testing/test_fleet.h"
#include "services/status/config.h"
#include "services/status/status_server.h"

namespace muster::testing {

// Not thread-safe.
class TestStatus {
 public:
  // Starts, and waits until the feed was heard. The fleet outlives it.
  explicit TestStatus(TestFleet& fleet);
  ~TestStatus();

  // Starts the service again over the same state.
  void Start();
  void Stop();

  int port() const { return server_->port(); }

  // A channel with a connection of its own.
  std::shared_ptr<grpc::Channel> Connect(const TestIdentity& identity) const;

  // GetStatus as `identity`; with `forwarded`, as the gateway does for who has that URI.
  absl::StatusOr<v1::RunStatus> Get(const TestIdentity& identity,
                                    const v1::GetStatusRequest& request,
                                    const std::string& forwarded = "") const;
  // The run with up to 10,000 pairs as the operator sees it.
  absl::StatusOr<v1::RunStatus> Get(const std::string& run) const;

  // The first answer of Get(run) that `fits`; what was answered last after 30 s.
  v1::RunStatus Await(const std::string& run,
                      const std::function<bool(const v1::RunStatus&)>& fits) const;

  StatusConfig config;

 private:
  TestFleet& fleet_;
  std::unique_ptr<StatusServer> server_;
};

// The pair of `node` in an answer; empty if it is not there.
v1::PairStatus PairOf(const v1::RunStatus& status, const std::string& node);

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_STATUS_TESTING_TEST_STATUS_H_

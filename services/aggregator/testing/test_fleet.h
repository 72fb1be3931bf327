// A real aggregator over real mutual TLS on a free port, for tests.
#ifndef MUSTER_SERVICES_AGGREGATOR_TESTING_TEST_FLEET_H_
#define MUSTER_SERVICES_AGGREGATOR_TESTING_TEST_FLEET_H_

#include <grpcpp/channel.h>

#include <memory>
#include <string>
#include <vector>

#include "muster/v1/results.pb.h"
#include "muster/v1/runs.pb.h"
#include "services/aggregator/aggregator.h"
#include "services/common/identity/home.h"
#include "services/common/identity/identity.h"
#include "services/common/identity/key.h"
#include "services/common/store/records.h"

namespace muster::testing {

// Who a test speaks as.
struct TestIdentity {
  std::string chain_pem;
  std::string key_pem;
};

// A fleet in a folder of its own below the test's temporary folder. Not thread-safe.
class TestFleet {
 public:
  TestFleet();
  ~TestFleet();

  // Starts the aggregator, or starts it again over the same state.
  void Start();
  void Stop();

  int port() const { return aggregator_->port(); }
  int join_port() const { return aggregator_->join_port(); }
  int health_port() const { return aggregator_->health_port(); }
  const std::string& name() const { return fleet_; }
  std::string fleet_ca_pem() const;

  // A channel to where machines join.
  std::shared_ptr<grpc::Channel> ConnectToJoin() const;

  const TestIdentity& admin() const { return operator_; }

  // A certificate that the fleet's intermediate signs, for any name.
  TestIdentity Issue(const FleetName& name) const;

  // A channel with a connection of its own.
  std::shared_ptr<grpc::Channel> Connect(const TestIdentity& identity) const;

  // A run with its listener reported open (as the gateway would), so that credentials can be had.
  v1::Run CreateRun(const std::vector<std::string>& plugins, const std::vector<std::string>& nodes,
                    int timeout_seconds = 600, int seal_grace_seconds = 0);

  // A credential of the run through the API; `node` empty: any node.
  TestIdentity Credential(const std::string& run, const std::string& plugin,
                          const std::string& node);

  // What the audit log has of a run. The aggregator is stopped for it, and started again elsewhere.
  std::vector<AuditRecord> Audit(const std::string& run);

  // Waits until the run's state is final, at most 30 s.
  v1::Run WaitForEnd(const std::string& run);

  AggregatorConfig config;

 private:
  Home home_;
  std::string fleet_;
  TestIdentity operator_;
  std::unique_ptr<Aggregator> aggregator_;
};

// A result small enough for one call; correct in all it says.
v1::SubmitResultRequest SmallResult(const std::string& run, const std::string& plugin,
                                    const std::string& node, const std::string& body);

// An upload of `body` in chunks of `chunk` bytes, from wherever the server says; the final answer.
absl::StatusOr<v1::Result> UploadAll(const std::shared_ptr<grpc::Channel>& channel,
                                     const std::string& run, const std::string& plugin,
                                     const std::string& node, const std::string& body,
                                     size_t chunk = 1 << 20);

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_AGGREGATOR_TESTING_TEST_FLEET_H_

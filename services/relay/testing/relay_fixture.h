// Relays and nodes with real TLS, files and streams, for tests of shared files.
#ifndef MUSTER_SERVICES_RELAY_TESTING_RELAY_FIXTURE_H_
#define MUSTER_SERVICES_RELAY_TESTING_RELAY_FIXTURE_H_

#include <grpcpp/channel.h>

#include <memory>
#include <string>
#include <vector>

#include "services/common/attach/attach_client.h"
#include "services/common/base/executor.h"
#include "services/common/base/timers.h"
#include "services/common/identity/authority.h"
#include "services/common/shares/share_transfer.h"
#include "services/relay/config.h"
#include "services/relay/relay_server.h"

namespace muster::testing {

inline constexpr char kRelayTestFleet[] = "fleet-00112233.muster";

// Issues certificates for a test, and has a folder for its files. Not thread-safe. A failure ends
// the test program.
class RelayTestFleet {
 public:
  RelayTestFleet();
  ~RelayTestFleet();

  struct Credential {
    std::string key_pem;
    std::string chain_pem;
  };
  Credential Issue(const FleetName& name) const;
  // Issues a credential of a run, by a separate run CA.
  Credential IssueForRun(const RunName& name) const;
  // key.pem, cert.pem and ca.pem for it, in a folder of this name.
  std::string WriteIdentity(const FleetName& name, const std::string& folder) const;
  const std::string& root_pem() const { return root_pem_; }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
  std::string root_pem_;
  std::string middle_pem_;
  std::unique_ptr<Intermediate> intermediate_;
};

// Returns a channel to a relay, with the identity in this folder.
std::shared_ptr<grpc::Channel> ChannelTo(const std::string& target, const std::string& folder);

// A relay that can be stopped and started again on the same port. Not thread-safe.
class TestRelay {
 public:
  // `parent`: null for the root relay.
  TestRelay(const RelayTestFleet& fleet, const std::string& name, const TestRelay* parent);

  void Start();
  void Stop() { server_.reset(); }
  std::string target() const { return config.listen.ToString(); }
  // The address for joins, if it is configured.
  std::string join_target() const;

  RelayConfig config;

 private:
  std::unique_ptr<RunningService> server_;
};

// A node that attaches to a relay, and shares files. Not thread-safe.
class TestNode : private AttachDelegate {
 public:
  TestNode(const RelayTestFleet& fleet, const std::string& name);
  ~TestNode() override;

  // Attaches to this relay; waits for the welcome.
  void Attach(const TestRelay& relay);
  void Detach() { client_.reset(); }
  bool attached() const { return client_ != nullptr && client_->attached(); }

  // Returns a signed shared file.
  v1::SharedFile File(const std::string& target, const std::string& id, const std::string& body,
                      absl::Duration ttl = absl::InfiniteDuration()) const;
  absl::Status Sign(v1::SharedFile* file) const;
  ShareTransfer Relay() const;
  absl::StatusOr<v1::Share> Share(const std::string& target, const std::string& id,
                                  const std::string& body,
                                  absl::Duration ttl = absl::InfiniteDuration()) const;
  // Returns the bytes of a file that was shared with this node, or the reason of the error.
  std::string Read(const std::string& source, const std::string& id) const;
  // Returns "delivered at r2", "refused at root: ..."; or the reason of the error.
  std::string Outcome(const std::string& source, const std::string& target,
                      const std::string& id) const;
  // Waits until the outcome begins with this text; returns false after 90 s.
  bool Await(const std::string& source, const std::string& target, const std::string& id,
             const std::string& outcome) const;
  std::shared_ptr<grpc::Channel> channel() const;

 private:
  int64_t RevocationsVersion() override { return 0; }
  absl::Status OnWelcome(const v1::AttachResponse::Welcome&, bool) override {
    return absl::OkStatus();
  }
  absl::Status OnMessage(v1::AttachResponse) override { return absl::OkStatus(); }
  void OnLost(const absl::Status&) override {}
  void OnWritable() override {}

  const std::string name_;
  const std::string identity_folder_;
  std::string target_;
  mutable CallStopper stopper_;
  const std::unique_ptr<TimerService> timers_ = MakeTimerService(/*max_timers=*/16);
  Executor executor_{{.name = "node", .threads = 1}};
  std::unique_ptr<AttachClient> client_;
};

// Not thread-safe.
class TestOperator {
 public:
  TestOperator(const RelayTestFleet& fleet, const std::string& name);
  ShareTransfer At(const TestRelay& relay) const;

 private:
  const std::string identity_folder_;
  mutable CallStopper stopper_;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_RELAY_TESTING_RELAY_FIXTURE_H_

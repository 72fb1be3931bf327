// Relays and nodes with real TLS, files and streams, for tests of shared files.
#ifndef MUSTER_SERVICES_RELAY_TESTING_RELAY_FIXTURE_H_
#define MUSTER_SERVICES_RELAY_TESTING_RELAY_FIXTURE_H_

#include <memory>
#include <string>
#include <vector>

#include "services/common/attach/attach_client.h"
#include "services/common/identity/authority.h"
#include "services/common/shares/share_transfer.h"
#include "services/relay/config.h"
#include "services/relay/relay_server.h"

namespace muster::testing {

inline constexpr char kRelayTestFleet[] = "fleet-00112233.muster";

// Who issues certificates for a test, and where its files are. Not thread-safe. What fails ends the
// test program.
class RelayTestFleet {
 public:
  RelayTestFleet();
  ~RelayTestFleet();

  struct Credential {
    std::string key_pem;
    std::string chain_pem;
  };
  Credential Issue(const FleetName& name) const;
  // Of a run, by an authority of its own.
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

// A relay that can be stopped and started again on the same port. Not thread-safe.
class TestRelay {
 public:
  // `parent`: null for the one at the centre.
  TestRelay(const RelayTestFleet& fleet, const std::string& name, const TestRelay* parent);

  void Start();
  void Stop() { server_.reset(); }
  std::string target() const { return config.listen.ToString(); }
  // Where machines join, if the configuration says so.
  std::string join_target() const;

  RelayConfig config;

 private:
  std::unique_ptr<RunningService> server_;
};

// A node that hangs below a relay, and shares. Not thread-safe.
class TestNode : private AttachDelegate {
 public:
  TestNode(const RelayTestFleet& fleet, const std::string& name);
  ~TestNode() override;

  // Hangs below this relay from now on; waits until it is welcomed.
  void Attach(const TestRelay& relay);
  void Detach() { client_.reset(); }
  bool attached() const { return client_ != nullptr && client_->attached(); }

  // A signed one.
  v1::SharedFile File(const std::string& target, const std::string& id, const std::string& body,
                      absl::Duration ttl = absl::InfiniteDuration()) const;
  absl::Status Sign(v1::SharedFile* file) const;
  ShareTransfer Relay() const;
  absl::StatusOr<v1::Share> Share(const std::string& target, const std::string& id,
                                  const std::string& body,
                                  absl::Duration ttl = absl::InfiniteDuration()) const;
  // The bytes of what was shared with this node, or the error's reason.
  std::string Read(const std::string& source, const std::string& id) const;
  // "delivered at r2", "refused at root: ..."; or the error's reason.
  std::string Outcome(const std::string& source, const std::string& target,
                      const std::string& id) const;
  // Until the outcome is, or begins with, this; false after a minute and a half.
  bool Await(const std::string& source, const std::string& target, const std::string& id,
             const std::string& outcome) const;
  std::shared_ptr<grpc::Channel> channel() const;

 private:
  int64_t RevocationsVersion() override { return 0; }
  absl::Status OnWelcome(const v1::AttachResponse::Welcome&, bool) override {
    return absl::OkStatus();
  }
  void OnMessage(v1::AttachResponse) override {}
  void OnLost(const absl::Status&) override {}
  void OnWritable() override {}

  const std::string name_;
  const std::string identity_folder_;
  std::string target_;
  mutable CallStopper stopper_;
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

// A relay for tests of this folder: real TLS, and as unfriendly as told.
#ifndef MUSTER_SERVICES_AGENT_ATTACH_TEST_RELAY_H_
#define MUSTER_SERVICES_AGENT_ATTACH_TEST_RELAY_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/v1/attachment.grpc.pb.h"
#include "services/common/base/mutex.h"
#include "services/common/identity/authority.h"

namespace muster {

// A fleet that issues certificates. What fails ends the test program.
class TestTree {
 public:
  TestTree();

  struct Credential {
    std::string chain_pem;
    std::string key_pem;
  };
  Credential Issue(const FleetName& name, absl::Duration validity = absl::Hours(4)) const;

  // What `muster node join` leaves: node.json, command-ca.pem and tls/.
  void WriteNodeFolder(const std::string& folder, const std::string& node,
                       const std::vector<std::string>& relay_targets,
                       const std::string& command_ca_pem) const;
  void WriteIdentity(const std::string& folder, const std::string& node,
                     absl::Duration validity = absl::Hours(4)) const;

  const std::string& root_pem() const { return root_pem_; }

 private:
  std::string root_pem_;
  std::string middle_pem_;
  std::unique_ptr<Intermediate> intermediate_;
};

// What the relay has of a job of a node.
struct ToldJob {
  std::string out;
  int64_t reached = 0;
  std::optional<v1::JobRecord::Final> final;
};

// Plays the server's part of attachment.proto for one child. Thread-safe.
class TestRelay final : public v1::AttachService::Service {
 public:
  TestRelay(const TestTree& tree, std::string name);
  ~TestRelay() override;

  // Opens the door, on the port of before if there was one.
  void Start();
  // Cuts every connection and closes the door.
  void Stop();
  std::string target() const;

  // What the next streams meet.
  std::function<grpc::Status()> judge;  // before the greeting
  std::function<void(v1::AttachResponse::Greeting&)> spoil_greeting;
  std::atomic<int64_t> interval_ms{10'000};
  std::atomic<bool> beats{true};
  std::atomic<bool> connected{true};  // to the centre, as it says
  std::atomic<bool> acknowledges{true};

  // Sends to the child that is attached; false if there is none.
  bool Send(const v1::AttachResponse& message);
  void GreetAgain();
  void CutStream();  // the present one, from the inside

  // Each waits until it is so; false after a minute.
  bool AwaitHellos(int count);
  bool AwaitBeats(int count);
  bool AwaitGreetings(int count);  // of streams that began
  bool AwaitNobody();              // is attached
  bool AwaitJob(const std::string& job, const std::function<bool(const ToldJob&)>& enough);
  ToldJob job(const std::string& job) const;
  std::vector<v1::AttachRequest::Hello> hellos() const;

 private:
  using Stream = grpc::ServerReaderWriter<v1::AttachResponse, v1::AttachRequest>;

  grpc::Status Attach(grpc::ServerContext* context, Stream* stream) override;
  v1::AttachResponse Greeting() const;
  void Welcome(Stream* stream, const v1::AttachRequest::Hello& hello);
  void Store(Stream* stream, const v1::JobRecords& records);
  void Write(Stream* stream, const v1::AttachResponse& message);

  const TestTree::Credential credential_;
  const std::string root_pem_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
  mutable Mutex mutex_;
  mutable CondVar changed_;
  Stream* stream_ ABSL_GUARDED_BY(mutex_) = nullptr;
  grpc::ServerContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::vector<v1::AttachRequest::Hello> hellos_ ABSL_GUARDED_BY(mutex_);
  int beats_ ABSL_GUARDED_BY(mutex_) = 0;
  int greetings_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, ToldJob> jobs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_ATTACH_TEST_RELAY_H_

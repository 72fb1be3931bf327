// A result service for tests of this folder: real TLS, in memory, with faults from the test.
#ifndef MUSTER_SERVICES_CLIENT_TEST_PEER_H_
#define MUSTER_SERVICES_CLIENT_TEST_PEER_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/results.grpc.pb.h"
#include "muster/v1/runs.grpc.pb.h"
#include "services/client/client.h"
#include "services/common/base/mutex.h"

namespace muster::client {

// A fleet with one run, created for each test.
struct TestFleet {
  static TestFleet Make();

  // Returns a credential of the run for plugin "facts" on `node`: chain and key.
  std::pair<std::string, std::string> RunCredential(const std::string& node) const;

  // Returns the configuration for that credential, without targets.
  Config ConfigOf(const std::string& node) const;

  std::string fleet = "fleet-0badcafe.muster";
  std::string run = "0123456789abcdef";
  std::string root_pem;
  std::string server_chain_pem;
  std::string server_key_pem;
  std::string status_chain_pem;
  std::string status_key_pem;
  std::string run_ca_pem;          // self-signed
  std::string listener_chain_pem;  // of the run's listener, for "localhost"
  std::string listener_key_pem;
  std::function<std::pair<std::string, std::string>(const std::string&)> issue;
};

// Implements results.proto as far as a sender needs it: offsets, epochs, attempts, CRCs, digests,
// signatures by length. Thread-safe.
class TestPeer final : public v1::ResultService::Service {
 public:
  explicit TestPeer(const TestFleet& fleet);
  ~TestPeer() override;

  // Starts listening, on the previous port if there was one.
  void Start();
  // Cancels every connection and stops listening.
  void Stop();
  std::string target() const;

  struct Committed {
    std::string body;
    v1::ResultDescription description;
    int64_t generation = 0;
    std::string signature;
    bool zstd = false;  // a chunk was compressed
  };
  std::optional<Committed> committed() const;
  // Removes the committed result.
  void Forget();

  // Returns the reasons of DeclineRedelivery.
  std::vector<std::string> declines() const;

  // The definition of plugin "facts" in GetRun.
  std::string definition_yaml;

  // The state of the run in GetRun; none: unspecified.
  std::function<absl::StatusOr<v1::RunState>()> run_state;

  // Faults of the next streams.
  std::atomic<int64_t> cut_after{-1};        // bytes of one stream, then UNAVAILABLE; -1: never
  std::atomic<int> damage_digest{0};         // the number of finishes that get DIGEST_MISMATCH
  std::atomic<int> refuse_opens{0};          // the number of opens that get RESOURCE_EXHAUSTED
  std::function<absl::Status()> judge;       // decides first on every open and submit
  std::function<void(int64_t)> on_chunk;     // receives the offset
  std::function<absl::Status()> judge_read;  // decides on every read of the result
  // Opens need the digest of the committed result.
  std::atomic<bool> sealed{false};
  // Called after a commit, before its answer.
  std::function<void()> on_commit;
  // So many commits by Upload get UNAVAILABLE.
  std::atomic<int> lose_answers{0};

  std::atomic<int64_t> window{4 * 1024 * 1024};
  std::atomic<int64_t> chunk_max{256 * 1024};  // announced; up to 256 KiB are accepted
  std::atomic<bool> zstd{true};
  std::atomic<bool> probe_window{false};  // look once for bytes beyond the window

  std::atomic<int> opens{0};
  std::atomic<int64_t> chunk_bytes{0};  // raw bytes of all streams
  std::atomic<int> chunks{0};           // of all streams
  std::atomic<bool> overrun{false};     // found by probe_window

 private:
  // Serves one run with one plugin.
  class Runs final : public v1::RunService::Service {
   public:
    explicit Runs(const TestPeer& peer) : peer_(peer) {}
    grpc::Status GetRun(grpc::ServerContext*, const v1::GetRunRequest*, v1::Run*) override;

   private:
    const TestPeer& peer_;
  };

  grpc::Status OpenUpload(grpc::ServerContext*, const v1::OpenUploadRequest*,
                          v1::OpenUploadResponse*) override;
  grpc::Status Upload(grpc::ServerContext*,
                      grpc::ServerReaderWriter<v1::UploadResponse, v1::UploadRequest>*) override;
  grpc::Status SubmitResult(grpc::ServerContext*, const v1::SubmitResultRequest*,
                            v1::Result*) override;
  grpc::Status GetResult(grpc::ServerContext*, const v1::GetResultRequest*, v1::Result*) override;
  grpc::Status DeclineRedelivery(grpc::ServerContext*, const v1::DeclineRedeliveryRequest*,
                                 v1::DeclineRedeliveryResponse*) override;

  absl::Status ReceiveChunk(const v1::UploadRequest::Chunk& chunk, int64_t epoch);
  absl::StatusOr<v1::Result> Commit(const v1::ResultDescription& description,
                                    const std::string& body, const std::string& signature)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const TestFleet fleet_;
  Runs runs_{*this};
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
  mutable Mutex mutex_;
  v1::ResultDescription description_ ABSL_GUARDED_BY(mutex_);  // of the open upload
  std::string bytes_ ABSL_GUARDED_BY(mutex_);
  int64_t epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  bool saw_zstd_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Committed> committed_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> declines_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_TEST_PEER_H_

// A spool with its blobs on a simulated disk and its database in a real folder, and nodes that
// deliver to it, for tests.
#ifndef MUSTER_SERVICES_RELAY_TESTING_SPOOL_FIXTURE_H_
#define MUSTER_SERVICES_RELAY_TESTING_SPOOL_FIXTURE_H_

#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/executor.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/metrics.h"
#include "services/common/base/sha256.h"
#include "services/common/base/simulated_disk.h"
#include "services/common/base/status_macros.h"
#include "services/common/blob/blob_test_util.h"
#include "services/common/identity/authority.h"
#include "services/common/identity/result_signature.h"
#include "services/relay/spool/spool.h"

namespace muster::testing {

inline constexpr char kFleet[] = "fleet-00112233.muster";
inline constexpr char kRun[] = "0123456789abcdef";

// The signers: a fleet with an intermediate CA, and one key for all nodes.
class Signers {
 public:
  explicit Signers(absl::Time now)
      : now_(now),
        root_(*FleetRoot::Create(kFleet, *PrivateKey::Generate(), now)),
        key_(*PrivateKey::Generate()),
        intermediate_(*Intermediate::Load(
            kFleet, key_, *root_.SignIntermediate(key_.public_key(), now), root_.certificate())) {}

  std::string root_pem() const { return root_.certificate().ToPem(); }

  void Sign(const SignedResult& result, const std::string& as, UploadFinish* finish) const {
    const Certificate leaf =
        *intermediate_.Issue(NodeIdentity{as}, key_.public_key(), {}, now_, now_ + absl::Hours(24));
    finish->signature = *SignResult(key_, result);
    finish->signer_chain_pem = absl::StrCat(leaf.ToPem(), intermediate_.certificate().ToPem());
  }

 private:
  const absl::Time now_;
  const FleetRoot root_;
  const PrivateKey key_;
  const Intermediate intermediate_;
};

// Not thread-safe.
class SpoolFixture {
 public:
  // Request describes each result with these.
  static constexpr char kMediaType[] = "application/json";
  static constexpr char kFileName[] = "facts.json";

  SpoolFixture() {
    if (mkdtemp(root_.data()) == nullptr) std::abort();
    options.folder = root_ + "/spool";
    options.fleet_ca_pem = signers.root_pem();
  }
  ~SpoolFixture() {
    Close();
    RemoveTree(PosixFileOps(), root_).IgnoreError();
  }

  absl::Status Open() {
    Close();
    metrics_ = std::make_unique<Metrics>();
    disk_executor_ = std::make_unique<Executor>(Executor::Options{"disk", 1, 1024});
    ASSIGN_OR_RETURN(spool_, Spool::Open(options, *disk_executor_, clock, *metrics_, *ops));
    return absl::OkStatus();
  }

  void Close() {
    if (disk_executor_ != nullptr) disk_executor_->Drain(absl::Seconds(30)).IgnoreError();
    spool_.reset();
    disk_executor_.reset();
  }

  Spool& spool() { return *spool_; }

  static v1::OpenUploadRequest Request(const std::string& node, const std::string& plugin,
                                       const std::string& body, int64_t attempt = 1) {
    v1::OpenUploadRequest request;
    v1::ResultDescription& description = *request.mutable_description();
    description.mutable_key()->set_run(kRun);
    description.mutable_key()->set_plugin(plugin);
    description.mutable_key()->set_node(node);
    description.set_attempt(attempt);
    description.set_media_type(kMediaType);
    description.set_file_name(kFileName);
    request.set_size(static_cast<int64_t>(body.size()));
    return request;
  }

  static UploadPeer Peer(const std::string& node) { return {{kFleet, NodeIdentity{node}}, {}}; }

  absl::StatusOr<v1::OpenUploadResponse> OpenUpload(const v1::OpenUploadRequest& request) {
    auto promise = std::make_shared<std::promise<absl::StatusOr<v1::OpenUploadResponse>>>();
    spool().OpenUpload(request, Peer(request.description().key().node()),
                       [promise](auto opened) { promise->set_value(std::move(opened)); });
    return promise->get_future().get();
  }

  // Sends the bytes from the offset of the upload up to `until`, by a separate stream.
  absl::Status Send(const v1::OpenUploadResponse& opened, const std::string& node,
                    const std::string& body, size_t until) {
    return On<absl::Status>(opened, node, [&](UploadSession& session) -> absl::Status {
      ASSIGN_OR_RETURN(const auto attachment,
                       session.Attach(opened.epoch(), Peer(node), [](const absl::Status&) {}));
      for (size_t at = static_cast<size_t>(opened.offset()); at < until; at += kChunk) {
        UploadChunk chunk;
        chunk.offset = static_cast<int64_t>(at);
        chunk.data = body.substr(at, std::min(kChunk, until - at));
        chunk.raw_size = static_cast<int64_t>(chunk.data.size());
        chunk.crc32c = Crc32c(chunk.data);
        RETURN_IF_ERROR(session.Append(attachment, std::move(chunk)));
      }
      return absl::OkStatus();
    });
  }

  // Sends one chunk at an offset by its own stream.
  absl::Status SendAt(const v1::OpenUploadResponse& opened, const std::string& node, int64_t offset,
                      const std::string& data) {
    return On<absl::Status>(opened, node, [&](UploadSession& session) -> absl::Status {
      ASSIGN_OR_RETURN(const auto attachment,
                       session.Attach(opened.epoch(), Peer(node), [](const absl::Status&) {}));
      UploadChunk chunk;
      chunk.offset = offset;
      chunk.data = data;
      chunk.raw_size = static_cast<int64_t>(data.size());
      chunk.crc32c = Crc32c(data);
      return session.Append(attachment, std::move(chunk)).status();
    });
  }

  // Waits until the tasks of the disk's thread that were queued before have run.
  void DrainDisk() { disk_executor_->AwaitIdle(); }

  // Damages the published blobs: flips one bit of each.
  void DamageBlobs() {
    for (const std::string& path : BlobPaths()) disk.FlipBit(path, 100);
  }

  // The names of the published blobs.
  std::vector<std::string> Blobs() {
    std::vector<std::string> names;
    for (const std::string& path : BlobPaths()) names.push_back(path.substr(path.rfind('/') + 1));
    return names;
  }
  std::vector<std::string> BlobPaths() {
    std::vector<std::string> paths;
    std::vector<std::string> folders = {options.folder + "/blobs/blobs"};
    while (!folders.empty()) {
      const std::string folder = folders.back();
      folders.pop_back();
      const auto entries = ops->List(folder);
      for (const FolderEntry& entry : entries.value_or(std::vector<FolderEntry>())) {
        if (entry.type == FileType::kFolder) {
          folders.push_back(absl::StrCat(folder, "/", entry.name));
        } else {
          paths.push_back(absl::StrCat(folder, "/", entry.name));
        }
      }
    }
    return paths;
  }

  // Completes the upload, by a separate stream.
  absl::Status Complete(const v1::OpenUploadResponse& opened, const std::string& node,
                        const std::string& plugin, const std::string& body, int64_t attempt = 1,
                        const std::optional<std::string>& signer = std::nullopt) {
    UploadFinish finish;
    finish.size = static_cast<int64_t>(body.size());
    finish.crc32c = Crc32c(body);
    finish.sha256 = DigestBytes(Sha256::Of(body));
    if (signer != "") {
      const SignedResult result = {.run = kRun,
                                   .plugin = plugin,
                                   .node = node,
                                   .attempt = attempt,
                                   .size = finish.size,
                                   .sha256 = finish.sha256,
                                   .media_type = kMediaType,
                                   .file_name = signed_file_name};
      signers.Sign(result, signer.value_or(node), &finish);
    }
    return On<absl::Status>(opened, node, [&](UploadSession& session) -> absl::Status {
      ASSIGN_OR_RETURN(const auto attachment,
                       session.Attach(opened.epoch(), Peer(node), [](const absl::Status&) {}));
      absl::Status status = absl::InternalError("no answer");
      before_complete();
      session.Complete(attachment, finish, [&](const auto& done) { status = done.status(); });
      return status;
    });
  }

  // Opens, sends and completes an upload.
  absl::Status Deliver(const std::string& node, const std::string& plugin, const std::string& body,
                       int64_t attempt = 1) {
    ASSIGN_OR_RETURN(auto opened, OpenUpload(Request(node, plugin, body, attempt)));
    if (spool().Receipt(opened.upload_id())) return absl::OkStatus();
    RETURN_IF_ERROR(Send(opened, node, body, body.size()));
    return Complete(opened, node, plugin, body, attempt);
  }

  // Dequeues a result into `delivery`; returns "node/plugin", or "" if there is none.
  std::string Next() {
    delivery = spool().Dequeue();
    if (!delivery) return "";
    const v1::ResultKey& key = delivery->header.description().key();
    return absl::StrCat(key.node(), "/", key.plugin());
  }
  std::string Bytes(int64_t offset = 0) {
    auto source = spool().Read(*delivery, offset);
    return source.ok() ? ReadAll(**source) : std::string(source.status().message());
  }

  std::string Metric() const { return metrics_->Text(); }
  // The line of the used quota in the metrics.
  std::string Used() const {
    const std::string metrics = Metric();
    const size_t at = metrics.find("\nmuster_relay_spool_bytes ");
    return metrics.substr(at, metrics.find('\n', at + 1) - at);
  }

  FakeClock clock;
  SimulatedDisk disk;
  FileOps* ops = &disk;  // of the blobs
  Signers signers{clock.Now()};
  SpoolOptions options{.folder = "", .relay = "r1", .fleet = kFleet};
  std::optional<SpoolDelivery> delivery;
  // The nodes sign this file name.
  std::string signed_file_name = kFileName;
  // Called on the strand of an upload before it is completed.
  std::function<void()> before_complete = [] {};

 private:
  static constexpr size_t kChunk = 16 * 1024;

  template <typename T>
  T On(const v1::OpenUploadResponse& opened, const std::string& node,
       const std::function<T(UploadSession&)>& work) {
    ASSIGN_OR_RETURN(auto session, spool().Find(opened.upload_id(), node));
    std::promise<T> promise;
    if (!session->strand().Post([&] { promise.set_value(work(*session)); })) {
      return absl::ResourceExhaustedError("the strand is full");
    }
    return promise.get_future().get();
  }

  std::string root_ = ::testing::TempDir() + "/spool_XXXXXX";
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<Executor> disk_executor_;
  std::unique_ptr<Spool> spool_;
};

class SpoolTestBase : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(fixture_.Open().ok()); }

  SpoolFixture fixture_;
  const std::string small_ = Pattern(1000);
  const std::string large_ = Pattern(200'000);
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_RELAY_TESTING_SPOOL_FIXTURE_H_

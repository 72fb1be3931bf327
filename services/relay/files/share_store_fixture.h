// A store of shared files with its blobs on a simulated disk and its database in a real folder.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_STORE_FIXTURE_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_STORE_FIXTURE_H_

#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/executor.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/simulated_disk.h"
#include "services/common/base/status_macros.h"
#include "services/common/blob/blob_test_util.h"
#include "services/relay/files/share_store.h"
#include "services/relay/files/share_test_util.h"

namespace muster {

class ShareStoreFixture : public ::testing::Test {
 protected:
  ShareStoreFixture() {
    if (mkdtemp(root_.data()) == nullptr) std::abort();
    options_.folder = root_ + "/shares";
    options_.relay = "r1";
    Reopen();
  }
  ~ShareStoreFixture() override {
    Close();
    RemoveTree(PosixFileOps(), root_).IgnoreError();
  }

  void Reopen() {
    Close();
    const absl::Status opened = OpenStore();
    ASSERT_TRUE(opened.ok()) << opened;
  }

  void Close() {
    if (executor_ != nullptr) executor_->Drain(absl::Seconds(30)).IgnoreError();
    store_.reset();
    executor_.reset();
  }

  absl::Status OpenStore() {
    metrics_ = std::make_unique<Metrics>();
    executor_ = std::make_unique<Executor>(Executor::Options{"disk", 1, 64});
    ASSIGN_OR_RETURN(store_, ShareStore::Open(options_, *executor_, clock_, *metrics_, *ops_));
    return absl::OkStatus();
  }

  v1::SharedFile File(const std::string& body, const std::string& id = "f",
                      absl::Duration ttl = absl::InfiniteDuration()) {
    v1::SharedFile file = UnsignedFile(id, body, clock_.Now());
    if (ttl != absl::InfiniteDuration()) {
      file.mutable_expire_time()->set_seconds(absl::ToUnixSeconds(clock_.Now() + ttl));
    }
    file.set_signature("s");
    file.set_certificate_chain_pem("c");
    return file;
  }

  absl::StatusOr<ShareStore::Opened> Open(const v1::SharedFile& file,
                                          const std::string& source = "n1") {
    std::promise<absl::StatusOr<ShareStore::Opened>> opening;
    store_->OpenUpload(file, /*from_parent=*/false, NodeOpener(source),
                       [&](auto opened) { opening.set_value(std::move(opened)); });
    return opening.get_future().get();
  }

  // Calls `work` with a new attachment to the upload, on its strand.
  absl::Status OnStrand(const ShareStore::Opened& opened,
                        const std::function<void(UploadSession&, UploadAttachment,
                                                 std::function<void(absl::Status)> done)>& work) {
    ASSIGN_OR_RETURN(const auto session, store_->FindUpload(opened.upload_id, NodeOpener("n1")));
    std::promise<absl::Status> ended;
    // Nothing is used after the promise is kept: the caller may have returned.
    EXPECT_TRUE(session->strand().Post([&, session] {
      const auto attached = session->Attach(opened.epoch, UploadPeer(), [](const auto&) {});
      if (!attached.ok()) return ended.set_value(attached.status());
      work(*session, *attached, [&, session, attachment = *attached](const absl::Status& status) {
        session->Detach(attachment);
        ended.set_value(status);
      });
    }));
    return ended.get_future().get();
  }

  absl::Status Append(const ShareStore::Opened& opened, int64_t offset, const std::string& data) {
    return OnStrand(opened,
                    [&](UploadSession& session, UploadAttachment attachment, const auto& done) {
                      UploadChunk chunk;
                      chunk.offset = offset;
                      chunk.raw_size = static_cast<int64_t>(data.size());
                      chunk.crc32c = Crc32c(data);
                      chunk.data = data;
                      done(session.Append(attachment, std::move(chunk)).status());
                    });
  }

  absl::Status Complete(const ShareStore::Opened& opened) {
    return OnStrand(opened, [&](UploadSession& session, UploadAttachment attachment,
                                const auto& done) {
      store_->Complete(session, attachment, [done](const auto& share) { done(share.status()); });
    });
  }

  // Waits until the tasks of the strands that were queued before have run.
  void DrainDisk() { executor_->AwaitIdle(); }

  // Shares a file; returns its record.
  absl::StatusOr<ShareRecord> Store(const std::string& body, const v1::SharedFile& file,
                                    bool from_parent = false) {
    RETURN_IF_ERROR(store_->Receive(
        file, from_parent, from_parent ? kParentOpener : NodeOpener("n1"),
        [&](int64_t offset, ShareStore::Sink sink) -> absl::Status {
          for (auto at = static_cast<size_t>(offset); at < body.size(); at += kPiece) {
            RETURN_IF_ERROR(sink(std::string_view(body).substr(at, kPiece)));
          }
          return absl::OkStatus();
        }));
    const auto found = store_->Find(file.key());
    if (!found) return absl::NotFoundError("no record");
    return *found;
  }

  int Blobs() {
    int blobs = 0;
    std::vector<std::string> folders = {options_.folder + "/blobs/blobs"};
    while (!folders.empty()) {
      const std::string folder = folders.back();
      folders.pop_back();
      const auto entries = ops_->List(folder);
      for (const FolderEntry& entry : entries.value_or(std::vector<FolderEntry>())) {
        if (entry.type == FileType::kFolder) {
          folders.push_back(folder + "/" + entry.name);
        } else {
          ++blobs;
        }
      }
    }
    return blobs;
  }

  std::string Body(const v1::SharedFile& file, int64_t offset = 0) {
    const auto found = store_->Find(file.key());
    if (!found || found->stage != ShareStage::kHeld) return "(not held)";
    auto source = store_->Read(*found, offset);
    return source.ok() ? ReadAll(**source) : std::string(source.status().message());
  }

  static constexpr size_t kPiece = 16 * 1024;

  std::string root_ = ::testing::TempDir() + "/shares_XXXXXX";
  FakeClock clock_;
  SimulatedDisk disk_;
  FileOps* ops_ = &disk_;  // of the blobs
  ShareStoreOptions options_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<ShareStore> store_;
  const std::string body_ = std::string(100'000, 'a') + "end";  // in a blob
  const std::string small_ = std::string(4000, 'a') + "end";    // in the database
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_STORE_FIXTURE_H_

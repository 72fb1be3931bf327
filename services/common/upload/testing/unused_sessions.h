// Upload sessions whose bytes are not used, for tests of tables of uploads.
#ifndef MUSTER_SERVICES_COMMON_UPLOAD_TESTING_UNUSED_SESSIONS_H_
#define MUSTER_SERVICES_COMMON_UPLOAD_TESTING_UNUSED_SESSIONS_H_

#include <memory>
#include <string>
#include <utility>

#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/simulated_disk.h"
#include "services/common/blob/files/files_blob_store.h"
#include "services/common/upload/upload_session.h"

namespace muster::testing {

// Makes sessions. Outlives them.
class UnusedSessions final : private ResultSink {
 public:
  explicit UnusedSessions(const Clock& clock) : clock_(clock) {}

  std::shared_ptr<UploadSession> Make(const std::string& id) {
    UploadRecord upload;
    upload.id = id;
    ResultSink& sink = *this;
    return std::make_shared<UploadSession>(upload, *blobs_, sink, executor_, clock_);
  }

 private:
  absl::Status CheckSignature(const VerifiedResult&) const override { return absl::OkStatus(); }
  void Commit(VerifiedResult, Done) override {}

  static FilesBlobStoreOptions Blobs() {
    FilesBlobStoreOptions options;
    options.root = "/blobs";
    return options;
  }

  const Clock& clock_;
  SimulatedDisk disk_;
  Executor executor_{{"disk", 1, 16}};
  const std::unique_ptr<BlobStore> blobs_ = *OpenFilesBlobStore(Blobs(), disk_);
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_COMMON_UPLOAD_TESTING_UNUSED_SESSIONS_H_

#include <utility>

#include "services/common/base/log.h"
#include "services/common/errors/runs.h"
#include "services/common/upload/blob_names.h"
#include "services/common/upload/upload_session.h"

// The ends of uploads that are not committed.
namespace muster {

void UploadSession::Discard(const absl::Status& why) {
  stream_.Release(why);
  Close();
  if (!stream_.completing()) RemovePublished();
}

void UploadSession::RemovePublished() {
  const std::string blob = ResultBlobName(key_.run, id_);
  if (const absl::Status status = blobs_.Remove(blob); !status.ok()) {
    Log(LogLevel::kWarning, "cannot remove the blob of a discarded upload",
        {{"blob", blob}, {"error", status}});
  }
}

void UploadSession::Close() {
  ended_ = true;
  CloseStaged();
  if (const absl::Status status = blobs_.DiscardStaged(id_); !status.ok()) {
    Log(LogLevel::kWarning, "staged bytes are kept until the next start",
        {{"upload", id_}, {"error", status}});
  }
}

absl::StatusOr<int64_t> UploadSession::KeepPartial(const std::string& name) {
  stream_.Release(errors::RunSealed(key_.run));
  ended_ = true;
  if (staged_ == nullptr) {
    auto staged = blobs_.Resume(id_);
    // The bytes are published, and a result may name them: the upload may have been committed since
    // the caller listed it. So they are not removed here.
    if (absl::IsNotFound(staged.status())) return 0;
    if (!staged.ok()) return staged.status();
    staged_ = *std::move(staged);
  }
  const int64_t size = staged_->written();
  absl::Status status = size == 0 ? staged_->Discard() : staged_->Publish(name);
  if (absl::IsAlreadyExists(status)) {
    // A crash came before the partial data of an earlier call was recorded, and the sender started
    // from the first byte.
    status = blobs_.Remove(name);
    if (status.ok()) status = staged_->Publish(name);
  }
  CloseStaged();
  if (!status.ok()) return status;
  return size;
}

}  // namespace muster

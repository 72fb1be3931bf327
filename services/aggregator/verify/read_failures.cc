#include "services/aggregator/verify/read_failures.h"

#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// More blobs than any disk with some bad sectors has.
constexpr size_t kMaxBlobs = 10'000;

// Returns true for failures of the disk below the blob. A lack of descriptors or memory says
// nothing about it, and has the same reason.
bool ConcernsTheBlob(const absl::Status& status) {
  for (const int error : {EIO, EUCLEAN, EBADMSG}) {
    if (absl::StrContains(status.message(), std::strerror(error))) return true;
  }
  return false;
}

class WatchedSource : public ByteSource {
 public:
  WatchedSource(ReadFailures& failures, std::string blob, std::unique_ptr<ByteSource> source)
      : failures_(failures), blob_(std::move(blob)), source_(std::move(source)) {}

  absl::StatusOr<size_t> Read(std::span<char> buffer) override {
    auto got = source_->Read(buffer);
    if (!got.ok()) return failures_.Judge(blob_, got.status());
    return got;
  }

 private:
  ReadFailures& failures_;
  const std::string blob_;
  const std::unique_ptr<ByteSource> source_;
};

}  // namespace

absl::Status ReadFailures::Judge(const std::string& blob, const absl::Status& status) {
  if (!ConcernsTheBlob(status)) return status;
  const absl::Duration now = clock_.MonotonicNow();
  MutexLock lock(mutex_);
  if (counts_.size() >= kMaxBlobs) counts_.clear();
  Count& count = counts_[blob];
  if (count.failures == 0 || now >= count.next) {
    ++count.failures;
    count.next = now + kReadFailureSpacing;
  }
  if (count.failures < kMaxReadFailures) return status;
  return absl::DataLossError(
      absl::StrCat("reading failed ", kMaxReadFailures, " times: ", status.message()));
}

void ReadFailures::Forget(const std::string& blob) {
  MutexLock lock(mutex_);
  counts_.erase(blob);
}

std::unique_ptr<ByteSource> ReadFailures::Watch(const std::string& blob,
                                                std::unique_ptr<ByteSource> source) {
  return std::make_unique<WatchedSource>(*this, blob, std::move(source));
}

}  // namespace muster

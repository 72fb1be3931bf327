// Contents in memory, for tests of the agent.
#ifndef MUSTER_SERVICES_AGENT_JOBS_TESTING_MEMORY_CONTENTS_H_
#define MUSTER_SERVICES_AGENT_JOBS_TESTING_MEMORY_CONTENTS_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "services/agent/jobs/content_fetcher.h"
#include "services/common/base/mutex.h"
#include "services/common/base/sha256.h"
#include "services/common/errors/contents.h"

namespace muster::testing {

// Thread-safe.
class MemoryContents final : public ContentSource {
 public:
  static constexpr size_t kPart = 1'000;

  // Stores a content. Returns a file that names it.
  v1::Command::File Add(const std::string& path, const std::string& bytes) {
    v1::Command::File file;
    file.set_path(path);
    file.set_sha256(DigestBytes(Sha256::Of(bytes)));
    file.set_size(static_cast<int64_t>(bytes.size()));
    MutexLock lock(mutex_);
    contents_[file.sha256()] = bytes;
    return file;
  }
  // Replaces the bytes, as a relay that lies does.
  void Replace(const v1::Command::File& file, const std::string& bytes) {
    MutexLock lock(mutex_);
    contents_[file.sha256()] = bytes;
  }
  // The next reads fail in this way.
  void FailWith(std::vector<absl::Status> failures) {
    MutexLock lock(mutex_);
    failures_.assign(failures.begin(), failures.end());
  }
  std::vector<int64_t> offsets() const {
    MutexLock lock(mutex_);
    return offsets_;
  }

  absl::StatusOr<std::string> Read(const std::string& deployment, const std::string& sha256,
                                   int64_t offset, absl::FunctionRef<bool()>) override {
    MutexLock lock(mutex_);
    offsets_.push_back(offset);
    if (!failures_.empty()) {
      absl::Status failure = failures_.front();
      failures_.pop_front();
      return failure;
    }
    const auto found = contents_.find(sha256);
    if (found == contents_.end()) return errors::ContentNotFound(ToHex(sha256), deployment);
    const auto at = std::min(static_cast<size_t>(offset), found->second.size());
    return found->second.substr(at, kPart);
  }

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::string> contents_ ABSL_GUARDED_BY(mutex_);
  std::deque<absl::Status> failures_ ABSL_GUARDED_BY(mutex_);
  std::vector<int64_t> offsets_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_AGENT_JOBS_TESTING_MEMORY_CONTENTS_H_

// The entries of a spool in memory: which upload or result each attempt of a pair has.
#ifndef MUSTER_SERVICES_RELAY_SPOOL_SPOOL_INDEX_H_
#define MUSTER_SERVICES_RELAY_SPOOL_SPOOL_INDEX_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/results.pb.h"
#include "services/common/base/mutex.h"
#include "services/common/upload/upload_session.h"

namespace muster {

// An upload in progress or a complete result. A value: a copy of the state at one moment.
struct SpoolEntry {
  std::string id;
  v1::ResultDescription description;
  int64_t epoch = 0;                       // of the last open
  absl::Duration opened;                   // monotonic, of the last open
  std::shared_ptr<UploadSession> session;  // null: the result is complete
  // Set for complete results:
  int64_t size = 0;
  std::string sha256;
  absl::Time expires;

  bool complete() const { return session == nullptr; }
  const std::string& node() const { return description.key().node(); }
  // The name of its blob; results up to kInlineLimit have none.
  std::string blob() const;
};

// Each attempt of a pair has at most one entry, and an upload that is being committed is not
// removed. Thread-safe; nothing waits.
class SpoolIndex {
 public:
  // Raises the epoch of the entry of this attempt and returns it; nothing if there is none. An
  // upload gets the description of its last open.
  // ABORTED (TAKEN_OVER) if a complete result of the attempt has other content.
  absl::StatusOr<std::optional<SpoolEntry>> Reopen(const v1::OpenUploadRequest& request,
                                                   absl::Duration now);

  // Adds an entry unless its attempt has one. Returns whether it was added.
  bool Insert(const SpoolEntry& entry);

  std::optional<SpoolEntry> Find(std::string_view id) const;

  // Returns whether the attempt has a complete result of which no delivery has failed.
  bool HasDeliverable(const v1::ResultDescription& description) const;

  // Records that a delivery of a complete result failed.
  void NoteFailedDelivery(std::string_view id);

  // Begins the commit of an upload: returns it unless it is removed, complete or being committed.
  // End with EndCommit or CancelCommit.
  std::optional<SpoolEntry> BeginCommit(std::string_view id);
  void CancelCommit(std::string_view id);
  void EndCommit(std::string_view id, int64_t size, const std::string& sha256, absl::Time expires);

  // Removes the upload of the attempt and returns it, unless it is being committed or complete.
  std::optional<SpoolEntry> RemoveUpload(const v1::ResultDescription& description);

  // Removes and returns all uploads without a stream that were last opened before `before`.
  std::vector<SpoolEntry> RemoveIdleUploads(absl::Duration before);

  // Removes a complete result.
  void RemoveResult(std::string_view id);

  // The sessions of all uploads.
  std::vector<std::shared_ptr<UploadSession>> sessions() const;

 private:
  struct Slot {
    SpoolEntry entry;
    bool committing = false;
    bool delivery_failed = false;
  };
  using Slots = std::unordered_map<std::string, Slot>;

  void Erase(Slots::iterator it) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  Slots slots_ ABSL_GUARDED_BY(mutex_);  // by id
  // Key and attempt -> id.
  std::unordered_map<std::string, std::string> by_attempt_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_SPOOL_SPOOL_INDEX_H_

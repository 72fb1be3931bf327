// The records and uploads of shared files in memory.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_RECORDS_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_RECORDS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/upload/upload_session.h"
#include "services/relay/files/share_record.h"

namespace muster {

// An upload in progress. A value: a copy of the state at one moment.
struct ShareUpload {
  ShareRecord record;  // its stage is kIncoming
  std::shared_ptr<UploadSession> session;
  int64_t epoch = 0;      // of the last open
  absl::Duration active;  // monotonic: of the last open, or when a stream was last seen
};

struct ShareLimits {
  int64_t quota = 0;  // bytes
  int64_t max_files = 0;
  int64_t max_size = 0;  // of one file
};

// Each key has at most one record and one upload. The usage counts the files that are here and the
// full size of uploads. The number of keys, which includes the files that are not here any more, is
// at most four times that of files. One source uses at most half of each limit, so it does not
// refuse the files of others. Thread-safe; nothing waits.
class ShareRecords {
 public:
  // `clock` outlives it.
  ShareRecords(const Clock& clock, const ShareLimits& limits) : clock_(clock), limits_(limits) {}

  // Records. They are returned without signature and certificates, and as expired after their
  // expiry.

  std::optional<ShareRecord> Find(const v1::ShareKey& key) const;
  using Pick = std::function<bool(const ShareRecord&)>;
  // Returns the wanted records in order of their keys, after `after`.
  std::vector<ShareRecord> Select(const ShareName& after, size_t limit, const Pick& wanted) const;
  // Returns the record as it is stored, also if it expired meanwhile.
  std::shared_ptr<const ShareRecord> Stored(const v1::ShareKey& key) const;
  // Returns whether the record did not change since it was read.
  bool IsCurrent(const ShareRecord& record) const;

  // Adds a record, or replaces that of its key.
  void Put(const ShareRecord& record);
  // Removes the record of this key and id.
  void Erase(const ShareRecord& record);

  // Uploads.

  // Adds an upload to a key that has none.
  void AddUpload(const ShareUpload& upload);
  // Replaces the record of an upload and raises its epoch.
  std::optional<ShareUpload> ReopenUpload(const ShareRecord& record);
  std::optional<ShareUpload> FindUpload(std::string_view id) const;
  std::optional<ShareUpload> UploadOf(const v1::ShareKey& key) const;
  std::optional<ShareUpload> RemoveUpload(const v1::ShareKey& key);
  // Returns the keys of the uploads that received nothing for this time.
  std::vector<v1::ShareKey> IdleUploads(absl::Duration idle);
  // Returns the sessions of all uploads.
  std::vector<std::shared_ptr<UploadSession>> sessions() const;

  // Usage.

  // Returns OK if a new upload of this file is within the limits. TOO_MANY_UPLOADS, SHARE_QUOTA.
  absl::Status CheckLimits(const v1::SharedFile& file) const;
  // Returns the record to erase before a new upload of this file, if its source or all sources have
  // the largest number of keys: the oldest of an ended file, or else of a file that the parent has.
  std::optional<ShareRecord> FindForgettable(const v1::SharedFile& file) const;
  struct Usage {
    int64_t files = 0;
    int64_t bytes = 0;
  };
  Usage usage() const;

 private:
  struct Slot {
    std::shared_ptr<const ShareRecord> record;
    std::optional<ShareUpload> upload;
  };
  using Slots = std::map<ShareName, Slot>;
  struct Source {
    Usage usage;
    int64_t keys = 0;  // with a record or an upload
  };
  // A record that may be forgotten, in the order in which they are: an ended file first, then by
  // the time of the last change. The first member is its source, or empty for the order of all.
  using Forgettable = std::tuple<std::string, bool, int64_t, ShareName>;

  Slot& AddSlot(const ShareName& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckSource(const v1::SharedFile& file) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckKeys(const v1::SharedFile& file) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Source SourceOf(const v1::SharedFile& file) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t MaxFilesOfSource() const { return std::max<int64_t>(limits_.max_files / 2, 1); }
  bool HasExpired(const ShareRecord& record) const;
  ShareRecord AsOfNow(const ShareRecord& record) const;
  void Charge(const ShareRecord& record, int sign) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EraseIfEmpty(Slots::iterator it) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes the record of a slot from forgettable_ before a change (`add` is false), or adds it
  // after the change if it may be forgotten.
  void IndexForgettable(const Slot& slot, bool add) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  const ShareLimits limits_;
  mutable Mutex mutex_;
  Slots slots_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, ShareName> uploads_ ABSL_GUARDED_BY(mutex_);  // by id
  Usage usage_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Source> sources_ ABSL_GUARDED_BY(mutex_);  // with keys
  std::set<Forgettable> forgettable_ ABSL_GUARDED_BY(mutex_);  // each twice: of its source, of all
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_RECORDS_H_

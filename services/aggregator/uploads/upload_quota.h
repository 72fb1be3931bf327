// The limits of uploads: sessions, streams and bytes, of one result, one identity and one run.
#ifndef MUSTER_SERVICES_AGGREGATOR_UPLOADS_UPLOAD_QUOTA_H_
#define MUSTER_SERVICES_AGGREGATOR_UPLOADS_UPLOAD_QUOTA_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/mutex.h"
#include "services/common/blob/blob_store.h"
#include "services/common/identity/identity.h"
#include "services/common/rpc/caller_quota.h"
#include "services/common/rpc/open_streams.h"
#include "services/common/store/records.h"
#include "services/common/upload/upload_attachment.h"

namespace muster {

inline constexpr std::string_view kUploadMethod = "/muster.v1.ResultService/Upload";

// Sessions of one node, or of the credential of one pair: it has few results at a time.
inline constexpr int64_t kUploadsOfNode = 256;

struct UploadLimits {
  // Sessions in memory. One node has at most kUploadsOfNode of them, one other identity half, and
  // one run three quarters.
  int64_t max_uploads = 10'000;
  // Streams that are attached. One node has at most kUploadStreamsOfNode of them, one other
  // identity half, and one run three quarters.
  int64_t max_streams = 1'000;
  absl::Duration expiry = absl::Hours(24);
  uint64_t max_result_bytes = uint64_t{64} << 30;
  // Committed bytes of one run; 0: no limit.
  int64_t max_run_bytes = 0;
  // Shares of the disk that is free for results and their unfinished uploads.
  int64_t identity_percent = 50;
  int64_t run_percent = 80;
};

// Counts sessions, streams and staged bytes, and enforces their limits. Outlives its tickets.
// Thread-safe.
class UploadQuota {
 public:
  // Counts a session.
  struct SessionTicket {
    CallerQuota::Ticket of_identity;
    CallerQuota::Ticket of_run;
  };

  UploadQuota(BlobStore& blobs, OpenStreams& streams, const UploadLimits& limits)
      : blobs_(blobs), streams_(streams), limits_(limits) {}

  // Counts a session of `opener`. TOO_MANY_UPLOADS.
  absl::StatusOr<SessionTicket> ReserveSession(const Identity& opener, const std::string& run);

  // Counts a stream of `caller`. TOO_MANY_STREAMS, TOO_MANY_STREAMS_OF_CALLER, TOO_MANY_UPLOADS.
  absl::StatusOr<UploadTicket> CountStream(const Identity& caller, const std::string& run);

  int64_t sessions() const { return sessions_.reserved(); }
  int64_t streams() const { return streams_.Count(kUploadMethod); }

  // Returns OK if a result may have `size` bytes. RESULT_TOO_LARGE.
  absl::Status CheckSize(int64_t size) const;

  // Charges the staged bytes of an upload to its last sender.
  void Add(const UploadRecord& upload);

  // Charges an upload of before a restart for its staged bytes, also beyond the limits.
  void Restore(const UploadRecord& upload, int64_t staged);

  // Charges an upload for `size` bytes; larger charges grow in steps of 16 MiB, but not beyond the
  // announced size, and then the free space of the disk is determined. RESULT_TOO_LARGE,
  // TOO_MANY_STAGED_BYTES and UPLOAD_NOT_FOUND change nothing.
  absl::Status Grow(std::string_view id, int64_t size);

  // Releases the rest of the last step: no stream is attached to the upload.
  void Trim(std::string_view id);

  // Charges nothing for the bytes of an upload, which were removed.
  void Clear(std::string_view id);

  // Ends the charge of an upload.
  void Remove(std::string_view id);

  // Returns the uploads of a run that are charged.
  std::vector<std::string> OfRun(std::string_view run) const;

  // The bytes that all uploads are charged for.
  int64_t staged() const;

 private:
  struct Charge {
    std::string identity;
    std::string run;
    int64_t announced = -1;  // as UploadRecord::size
    int64_t size = 0;        // of the bytes, as last passed to Grow
    int64_t bytes = 0;       // charged
  };
  void Set(Charge& charge, int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  BlobStore& blobs_;
  OpenStreams& streams_;
  const UploadLimits limits_;
  CallerQuota sessions_;
  CallerQuota sessions_of_runs_;
  CallerQuota streams_of_runs_;
  mutable Mutex mutex_;
  std::unordered_map<std::string, Charge> charges_ ABSL_GUARDED_BY(mutex_);  // by upload
  std::map<std::string, int64_t> identities_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int64_t> runs_ ABSL_GUARDED_BY(mutex_);
  int64_t staged_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_UPLOADS_UPLOAD_QUOTA_H_

// Which stream is attached to an upload.
#ifndef MUSTER_SERVICES_COMMON_UPLOAD_UPLOAD_ATTACHMENT_H_
#define MUSTER_SERVICES_COMMON_UPLOAD_UPLOAD_ATTACHMENT_H_

#include <cstdint>
#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/caller_quota.h"
#include "services/common/rpc/open_streams.h"

namespace muster {

// Counts a stream for its caller and, where that is limited, for its run. Movable.
struct UploadTicket {
  OpenStreams::Ticket of_caller;
  CallerQuota::Ticket of_run;
};

// Names one attachment of a stream to an upload: only the calls of the stream that is attached now
// have an effect. A plain value; the default one names no attachment.
class UploadAttachment {
 public:
  UploadAttachment() = default;
  bool operator==(const UploadAttachment&) const = default;

 private:
  friend class AttachedStream;
  explicit UploadAttachment(uint64_t number) : number_(number) {}

  uint64_t number_ = 0;
};

// The stream that is attached to an upload, at most one at a time, and the completion of the
// upload. Thread-safe. `on_detached` of a stream runs once, without a lock, when another side ends
// the stream; it must not block. The ticket of a stream is released when the stream is ended or
// detached, whichever is first: the stream of a lost connection may exist for a minute longer.
class AttachedStream {
 public:
  using OnDetached = std::function<void(absl::Status)>;

  explicit AttachedStream(const Clock& clock) : clock_(clock) {}

  // Attaches a stream. Release was called before.
  UploadAttachment Attach(OnDetached on_detached, UploadTicket ticket);

  // The stream has ended. Returns false for a stream that is not the last one that was attached.
  bool Detach(const UploadAttachment& attachment);

  // Ends the attached stream with `why` and releases its ticket.
  void Release(const absl::Status& why);

  // Ends the attached stream with UPLOAD_STALLED if it has been stalled for longer than `limit`.
  // Its Detach is still effective.
  void EndStalled(absl::Duration limit);

  bool attached() const;
  bool IsAttached(const UploadAttachment& attachment) const;

  void NoteProgress();

  // The time since the last progress; zero while no stream is attached.
  absl::Duration StalledFor() const;

  // The time since a stream was attached, or since NoteOpened; zero while one is attached.
  absl::Duration UnattachedFor() const;
  void NoteOpened();

  // A completion is in progress from SetCompleting until ResetCompleting or FailCompleting. One
  // that succeeds stays.
  void SetCompleting(const UploadAttachment& attachment);
  void ResetCompleting() { SetCompleting({}); }
  // Returns false if the completion of `attachment` is not the one in progress.
  bool FailCompleting(const UploadAttachment& attachment);
  bool completing() const;

 private:
  // The callback and the ticket of a stream that was ended, to be used without the lock.
  struct EndedStream {
    OnDetached on_detached;
    UploadTicket ticket;
  };
  EndedStream EndStream() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Duration StalledForLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  mutable Mutex mutex_;
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  // The last attachment, until its Detach.
  UploadAttachment current_ ABSL_GUARDED_BY(mutex_);
  bool attached_ ABSL_GUARDED_BY(mutex_) = false;  // its stream has not been ended
  OnDetached on_detached_ ABSL_GUARDED_BY(mutex_);
  UploadTicket ticket_ ABSL_GUARDED_BY(mutex_);              // while attached_
  absl::Duration progress_at_ ABSL_GUARDED_BY(mutex_);       // monotonic
  absl::Duration unattached_since_ ABSL_GUARDED_BY(mutex_);  // monotonic
  UploadAttachment completing_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_UPLOAD_UPLOAD_ATTACHMENT_H_

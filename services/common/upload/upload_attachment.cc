#include "services/common/upload/upload_attachment.h"

#include <utility>

#include "services/common/errors/results.h"

namespace muster {

UploadAttachment AttachedStream::Attach(OnDetached on_detached, UploadTicket ticket) {
  MutexLock lock(mutex_);
  current_ = UploadAttachment(++last_number_);
  attached_ = true;
  on_detached_ = std::move(on_detached);
  ticket_ = std::move(ticket);
  progress_at_ = clock_.MonotonicNow();
  return current_;
}

bool AttachedStream::Detach(const UploadAttachment& attachment) {
  EndedStream ended;
  MutexLock lock(mutex_);
  if (attachment == UploadAttachment() || attachment != current_) return false;
  current_ = {};
  ended = EndStream();
  return true;
}

void AttachedStream::Release(const absl::Status& why) {
  EndedStream ended;
  {
    MutexLock lock(mutex_);
    current_ = {};
    ended = EndStream();
  }
  if (ended.on_detached) ended.on_detached(why);
}

void AttachedStream::EndStalled(absl::Duration limit) {
  EndedStream ended;
  {
    MutexLock lock(mutex_);
    if (StalledForLocked() <= limit) return;
    ended = EndStream();
  }
  if (ended.on_detached) ended.on_detached(errors::UploadStalled());
}

AttachedStream::EndedStream AttachedStream::EndStream() {
  if (std::exchange(attached_, false)) unattached_since_ = clock_.MonotonicNow();
  return {std::exchange(on_detached_, nullptr), std::move(ticket_)};
}

bool AttachedStream::attached() const {
  MutexLock lock(mutex_);
  return attached_;
}

bool AttachedStream::IsAttached(const UploadAttachment& attachment) const {
  MutexLock lock(mutex_);
  return attached_ && attachment == current_;
}

void AttachedStream::NoteProgress() {
  MutexLock lock(mutex_);
  progress_at_ = clock_.MonotonicNow();
}

absl::Duration AttachedStream::StalledForLocked() const {
  return attached_ ? clock_.MonotonicNow() - progress_at_ : absl::ZeroDuration();
}

absl::Duration AttachedStream::StalledFor() const {
  MutexLock lock(mutex_);
  return StalledForLocked();
}

absl::Duration AttachedStream::UnattachedFor() const {
  MutexLock lock(mutex_);
  return attached_ ? absl::ZeroDuration() : clock_.MonotonicNow() - unattached_since_;
}

void AttachedStream::NoteOpened() {
  MutexLock lock(mutex_);
  unattached_since_ = clock_.MonotonicNow();
}

void AttachedStream::SetCompleting(const UploadAttachment& attachment) {
  MutexLock lock(mutex_);
  completing_ = attachment;
}

bool AttachedStream::FailCompleting(const UploadAttachment& attachment) {
  MutexLock lock(mutex_);
  if (completing_ != attachment) return false;
  completing_ = {};
  return true;
}

bool AttachedStream::completing() const {
  MutexLock lock(mutex_);
  return completing_ != UploadAttachment();
}

}  // namespace muster

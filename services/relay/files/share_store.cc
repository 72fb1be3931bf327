#include "services/relay/files/share_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/log.h"
#include "services/common/base/random_id.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/results.h"
#include "services/common/errors/shares.h"
#include "services/common/identity/share_signature.h"
#include "services/relay/files/share_errors.h"
#include "services/relay/files/share_store_figures.h"

namespace muster {
namespace {

constexpr size_t kIdBytes = 16;
constexpr size_t kMaxUploads = 256;
constexpr int64_t kMaxUploadsOfSource = 16;
// For each file that may be here, so many more may be remembered that were.
constexpr int64_t kRememberedForEach = 3;
constexpr int64_t kMaxRecordFile = 64 * 1024;

bool SameBytes(const v1::SharedFile& a, const v1::SharedFile& b) {
  return a.sha256() == b.sha256() && a.size() == b.size();
}

}  // namespace

ShareStore::~ShareStore() = default;

int64_t ShareStore::files() const {
  MutexLock lock(mutex_);
  return files_;
}

int64_t ShareStore::bytes() const {
  MutexLock lock(mutex_);
  return bytes_;
}

void ShareStore::Measure() const {
  figures_->files.Set(static_cast<double>(files_));
  figures_->bytes.Set(static_cast<double>(bytes_));
}

std::string ShareStore::PathOf(const std::string& id) const {
  return absl::StrCat(options_.folder, "/records/", id);
}

absl::Status ShareStore::Write(const ShareRecord& record) const {
  return WriteFileDurably(ops_, PathOf(record.id), FormatShareRecord(record));
}

absl::StatusOr<v1::SharedFile> ShareStore::ReadFile(const ShareRecord& record) const {
  auto content = ReadSmallFile(ops_, PathOf(record.id), kMaxRecordFile);
  if (absl::IsNotFound(content.status())) return errors::ShareNotFound(record.key());
  if (!content.ok()) return content.status();
  ASSIGN_OR_RETURN(auto whole, ParseShareRecord(record.id, *content));
  return std::move(*whole.share.mutable_file());
}

// The bytes before the record: a record without bytes says so to the next life.
void ShareStore::RemoveFiles(const ShareRecord& record) const {
  absl::Status removed = blobs_->Remove(record.blob());
  if (removed.ok()) removed = ops_.Remove(PathOf(record.id));
  if (!removed.ok() && !absl::IsNotFound(removed)) {
    Log(LogLevel::kError, "what is left of a shared file cannot be removed", {{"error", removed}});
  }
}

// Signature and certificates stay on the disk.
void ShareStore::Put(const ShareRecord& record) {
  auto is = std::make_shared<ShareRecord>(record);
  is->share.mutable_file()->clear_signature();
  is->share.mutable_file()->clear_certificate_chain_pem();
  MutexLock lock(mutex_);
  Slot& slot = slots_[NameOf(record.key())];
  if (slot.current != nullptr) {
    is->revision = slot.current->revision + 1;
    if (slot.current->has_bytes()) {
      --files_;
      bytes_ -= slot.current->share.file().size();
    }
  }
  if (is->has_bytes()) {
    ++files_;
    bytes_ += is->share.file().size();
  }
  slot.current = std::move(is);
  Measure();
}

void ShareStore::Erase(const ShareRecord& record) {
  MutexLock lock(mutex_);
  const auto it = slots_.find(NameOf(record.key()));
  if (it == slots_.end() || it->second.current == nullptr || it->second.current->id != record.id) {
    return;
  }
  if (it->second.current->has_bytes()) {
    --files_;
    bytes_ -= it->second.current->share.file().size();
  }
  it->second.current = nullptr;
  if (it->second.incoming == nullptr) slots_.erase(it);
  Measure();
}

// Ends the upload of a key, if there is one. What is returned is let go of without mutex_, as that
// waits for the disk.
std::shared_ptr<ShareUpload> ShareStore::RemoveIncoming(const ShareName& name) {
  MutexLock lock(mutex_);
  const auto it = slots_.find(name);
  if (it == slots_.end() || it->second.incoming == nullptr) return nullptr;
  const std::shared_ptr<ShareUpload> upload = std::exchange(it->second.incoming, nullptr);
  uploads_.erase(upload->id());
  --files_;
  bytes_ -= upload->size();
  if (it->second.current == nullptr) slots_.erase(it);
  Measure();
  return upload;
}

void ShareStore::DropUpload(const v1::ShareKey& key) {
  MutexLock change(change_mutex_);
  const auto upload = RemoveIncoming(NameOf(key));
  if (upload == nullptr) return;
  upload->Drop();
  ops_.Remove(PathOf(upload->id())).IgnoreError();
}

absl::StatusOr<ShareStore::Opened> ShareStore::OpenUpload(const v1::SharedFile& file,
                                                          bool from_parent,
                                                          const std::string& opener) {
  if (ExpiryOf(file) <= clock_.Now()) return errors::ShareExpired(file.key());
  if (file.size() > options_.max_size) {
    return errors::ShareTooLarge(file.size(), options_.max_size);
  }
  Opened opened;
  {
    MutexLock change(change_mutex_);
    // What was on its way for longer does not replace what was shared later.
    if (const auto found = Find(file.key());
        found && found->share.file().sign_time().seconds() > file.sign_time().seconds() &&
        !SameBytes(found->share.file(), file)) {
      return errors::ShareSuperseded(file.key());
    }
    opened.existing = FindSameContent(file, from_parent, opener);
    if (opened.existing) return opened;
    ASSIGN_OR_RETURN(opened.upload, Admit(file, from_parent, opener));
    opened.epoch = opened.upload->TakeOver();
  }
  ASSIGN_OR_RETURN(opened.offset, opened.upload->Ready());
  if (!opened.upload->published()) return opened;
  MutexLock change(change_mutex_);
  ASSIGN_OR_RETURN(opened.existing, MakeHeld(*opened.upload));
  return opened;
}

// A file that is here already, or was passed on down: with what was signed last.
std::optional<ShareRecord> ShareStore::FindSameContent(const v1::SharedFile& file, bool from_parent,
                                                       const std::string& opener) {
  const auto found = Find(file.key());
  if (!found || !SameBytes(found->share.file(), file) || found->removing) return std::nullopt;
  const bool held = found->stage == ShareStage::kHeld;
  // Who has it and brings it back has it no more once it is told that it is here.
  const bool downstream = found->stage == ShareStage::kPassedDown &&
                          opener != RelayOpener(found->child) &&
                          ExpiryOf(found->share.file()) >= ExpiryOf(file);
  if (!held && !downstream) return std::nullopt;
  ShareRecord is = *found;
  if (from_parent) is.from_parent = is.unreported = true;
  const bool newer = file.sign_time().seconds() > is.share.file().sign_time().seconds();
  if (!newer && !from_parent) return is;
  if (held && newer) *is.share.mutable_file() = file;
  const absl::Status updated = UpdateLocked(*found, is);
  if (updated.ok()) return is;
  Log(LogLevel::kError, "cannot write down what was signed anew", {{"error", updated}});
  return std::nullopt;
}

absl::Status ShareStore::CheckRoom(const v1::SharedFile& file) const {
  MutexLock lock(mutex_);
  if (uploads_.size() >= kMaxUploads) {
    return errors::TooManyUploads(static_cast<int64_t>(kMaxUploads));
  }
  // Those of one source do not keep others out.
  const auto of_source = std::ranges::count_if(
      uploads_, [&](const auto& upload) { return upload.second->source() == file.key().source(); });
  if (of_source >= kMaxUploadsOfSource) return errors::TooManyUploads(kMaxUploadsOfSource);
  const int64_t room = options_.quota - bytes_;
  if (file.size() > room) {
    figures_->refused.Add();
    return errors::ShareQuota(absl::StrCat(file.size(), " bytes, and ", std::max<int64_t>(room, 0),
                                           " of ", options_.quota, " are left"));
  }
  const auto known = static_cast<int64_t>(slots_.size());
  if (files_ >= options_.max_files || known >= options_.max_files * (1 + kRememberedForEach)) {
    figures_->refused.Add();
    return errors::ShareQuota(absl::StrCat("there are ", options_.max_files, " already"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<ShareUpload>> ShareStore::Admit(const v1::SharedFile& file,
                                                               bool from_parent,
                                                               const std::string& opener) {
  const ShareName name = NameOf(file.key());
  std::shared_ptr<ShareUpload> upload;
  {
    MutexLock lock(mutex_);
    if (const auto it = slots_.find(name); it != slots_.end()) upload = it->second.incoming;
  }
  if (upload != nullptr) {
    ShareRecord record = upload->record();
    if (SameBytes(record.share.file(), file) && record.child == opener) {
      *record.share.mutable_file() = file;
      RETURN_IF_ERROR(Write(record));
      upload->SetRecord(std::move(record));
      return upload;
    }
    RemoveIncoming(name);
    upload->Drop();
    ops_.Remove(PathOf(upload->id())).IgnoreError();
  }
  RETURN_IF_ERROR(CheckRoom(file));
  ShareRecord record;
  record.id = RandomHex(kIdBytes);
  record.from_parent = from_parent;
  record.child = opener;
  *record.share.mutable_file() = file;
  record.share.set_state(v1::SHARE_STATE_IN_TRANSIT);
  record.share.set_relay(options_.relay);
  record.share.mutable_change_time()->set_seconds(absl::ToUnixSeconds(clock_.Now()));
  {
    MutexLock lock(mutex_);
    record.order = ++last_order_;
  }
  RETURN_IF_ERROR(Write(record));
  upload = std::make_shared<ShareUpload>(std::move(record), *blobs_);
  MutexLock lock(mutex_);
  Slot& slot = slots_[name];
  slot.incoming = upload;
  slot.touched = clock_.Now();
  slot.chunks = 0;
  uploads_[upload->id()] = upload;
  ++files_;
  bytes_ += upload->size();
  Measure();
  return upload;
}

absl::StatusOr<std::shared_ptr<ShareUpload>> ShareStore::FindUpload(
    const std::string& id, const std::string& opener) const {
  MutexLock lock(mutex_);
  const auto it = uploads_.find(id);
  if (it == uploads_.end() || it->second->record().child != opener) {
    return errors::UploadNotFound(id);
  }
  return it->second;
}

absl::StatusOr<ShareRecord> ShareStore::Complete(ShareUpload& upload, int64_t epoch) {
  const absl::Status published = upload.Publish(epoch);
  if (absl::IsDataLoss(published)) DropUpload(upload.record().key());
  if (!published.ok()) return published;
  MutexLock change(change_mutex_);
  return MakeHeld(upload);
}

absl::StatusOr<ShareRecord> ShareStore::MakeHeld(const ShareUpload& upload) {
  ShareRecord is = upload.record();
  const ShareName name = NameOf(is.key());
  std::shared_ptr<const ShareRecord> before;
  {
    MutexLock lock(mutex_);
    const auto it = slots_.find(name);
    if (it == slots_.end() || it->second.incoming.get() != &upload) {
      return errors::TakenOver(upload.id());
    }
    before = it->second.current;
  }
  is.stage = ShareStage::kHeld;
  is.child.clear();
  is.unreported = is.from_parent;
  // What came from above and comes back: who is above still wants to hear of it.
  is.from_parent = is.from_parent || (before != nullptr && before->from_parent &&
                                      SameBytes(before->share.file(), is.share.file()));
  is.share.mutable_change_time()->set_seconds(absl::ToUnixSeconds(clock_.Now()));
  RETURN_IF_ERROR(Write(is));
  const auto keep = RemoveIncoming(name);
  Put(is);
  if (before != nullptr) RemoveFiles(*before);
  figures_->taken.Add();
  return is;
}

absl::StatusOr<std::unique_ptr<ByteSource>> ShareStore::Read(const ShareRecord& record,
                                                             int64_t offset) const {
  if (offset < 0 || offset > record.share.file().size()) {
    return errors::OffsetTooHigh(offset, record.share.file().size());
  }
  auto source = blobs_->Open(record.blob(), offset);
  if (absl::IsNotFound(source.status())) return errors::ShareNotFound(record.key());
  return source;
}

// Whatever the disk says: what has expired is not there.
ShareRecord ShareStore::AsOfNow(const ShareRecord& record) const {
  ShareRecord is = record;
  if (is.stage == ShareStage::kEnded || ExpiryOf(is.share.file()) > clock_.Now()) return is;
  is.stage = ShareStage::kEnded;
  is.share.set_state(v1::SHARE_STATE_EXPIRED);
  *is.share.mutable_change_time() = is.share.file().expire_time();
  return is;
}

std::optional<ShareRecord> ShareStore::Find(const v1::ShareKey& key) const {
  MutexLock lock(mutex_);
  const auto it = slots_.find(NameOf(key));
  if (it == slots_.end() || it->second.current == nullptr) return std::nullopt;
  return AsOfNow(*it->second.current);
}

std::vector<ShareRecord> ShareStore::Select(const ShareName& after, size_t limit,
                                            const Pick& wanted) const {
  std::vector<ShareRecord> list;
  MutexLock lock(mutex_);
  for (auto it = slots_.upper_bound(after); it != slots_.end() && list.size() < limit; ++it) {
    if (it->second.current == nullptr) continue;
    ShareRecord record = AsOfNow(*it->second.current);
    if (wanted(record)) list.push_back(std::move(record));
  }
  return list;
}

absl::Status ShareStore::Update(const ShareRecord& was, ShareRecord is) {
  MutexLock change(change_mutex_);
  return UpdateLocked(was, std::move(is));
}

absl::Status ShareStore::UpdateLocked(const ShareRecord& was, ShareRecord is) {
  {
    MutexLock lock(mutex_);
    const auto it = slots_.find(NameOf(was.key()));
    if (it == slots_.end() || it->second.current == nullptr || it->second.current->id != was.id ||
        it->second.current->revision != was.revision) {
      return absl::AbortedError("the shared file has changed meanwhile");
    }
  }
  if (is.share.file().signature().empty()) {
    ASSIGN_OR_RETURN(auto file, ReadFile(is));
    *is.share.mutable_file() = std::move(file);
  }
  RETURN_IF_ERROR(Write(is));
  Put(is);
  if (is.share.state() != was.share.state() || is.stage != was.stage) {
    figures_->Count(is);
  }
  return is.has_bytes() ? absl::OkStatus() : blobs_->Remove(is.blob());
}

}  // namespace muster

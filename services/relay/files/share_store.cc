#include "services/relay/files/share_store.h"

#include <future>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/random_id.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/string_source.h"
#include "services/common/errors/results.h"
#include "services/common/errors/runs.h"
#include "services/common/errors/shares.h"
#include "services/common/identity/share_signature.h"
#include "services/relay/files/share_counters.h"
#include "services/relay/files/share_errors.h"

namespace muster {
namespace {

constexpr size_t kIdBytes = 16;

bool SameBytes(const v1::SharedFile& a, const v1::SharedFile& b) {
  return a.sha256() == b.sha256() && a.size() == b.size();
}

}  // namespace

v1::ShareUsage ShareStore::Usage() const {
  const ShareRecords::Usage used = records_.usage();
  v1::ShareUsage usage;
  usage.set_relay(options_.relay);
  usage.set_max_files(options_.max_files);
  usage.set_quota(options_.quota);
  usage.set_files(used.files);
  usage.set_bytes(used.bytes);
  return usage;
}

absl::StatusOr<v1::SharedFile> ShareStore::ReadFile(const ShareRecord& record) const {
  auto file = table_->ReadFile(record.id);
  if (absl::IsNotFound(file.status())) return errors::ShareNotFound(record.key());
  return file;
}

absl::Status ShareStore::Update(const ShareRecord& before, ShareRecord after) {
  MutexLock change(change_mutex_);
  return UpdateLocked(before, after);
}

absl::Status ShareStore::UpdateLocked(const ShareRecord& before, const ShareRecord& after) {
  if (!records_.IsCurrent(before)) {
    return absl::AbortedError("the shared file has changed meanwhile");
  }
  RETURN_IF_ERROR(table_->Put(after));
  records_.Put(after);
  if (after.share.state() != before.share.state() || after.stage != before.stage) {
    counters_->Count(after);
  }
  return after.has_bytes() ? absl::OkStatus() : blobs_->Remove(after.blob());
}

absl::StatusOr<std::unique_ptr<ByteSource>> ShareStore::Read(const ShareRecord& record,
                                                             int64_t offset) const {
  const int64_t size = record.share.file().size();
  if (offset < 0 || offset > size) return errors::OffsetTooHigh(offset, size);
  if (size > kInlineLimit) {
    auto source = blobs_->Open(record.blob(), offset);
    if (absl::IsNotFound(source.status())) return errors::ShareNotFound(record.key());
    return source;
  }
  const auto body = table_->ReadBody(record.id);
  if (!body.ok() && !absl::IsNotFound(body.status())) return body.status();
  // The file may have ended meanwhile; then its bytes were removed.
  if (!body.ok() || static_cast<int64_t>(body->size()) != size) {
    return errors::ShareNotFound(record.key());
  }
  return std::make_unique<StringSource>(body->substr(static_cast<size_t>(offset)));
}

UploadRecord ShareStore::ToUpload(const ShareUpload& upload) {
  UploadRecord record;
  record.id = upload.record.id;
  record.key = {kShareRun, "", upload.record.key().source()};
  record.epoch = upload.epoch;
  record.size = upload.record.share.file().size();
  record.sha256 = upload.record.share.file().sha256();
  return record;
}

void ShareStore::AddUpload(const ShareRecord& record) {
  ShareUpload upload;
  upload.record = record;
  upload.session = std::make_shared<UploadSession>(ToUpload(upload), *blobs_, *this, disk_, clock_);
  records_.AddUpload(upload);
}

void ShareStore::DropUpload(const v1::ShareKey& key) {
  MutexLock change(change_mutex_);
  DropLocked(key);
}

// Ends the stream of an upload and removes its row and its bytes. The bytes may be published: a
// commit may have failed after that.
void ShareStore::DropLocked(const v1::ShareKey& key) {
  const auto upload = records_.RemoveUpload(key);
  if (!upload) return;
  absl::Status removed = table_->Remove(upload->record.id);
  const bool queued = upload->session->strand().Post([this, upload] {
    upload->session->Discard(errors::TakenOver(upload->record.id));
    blobs_->Remove(upload->record.blob()).IgnoreError();
  });
  if (!queued) removed.Update(errors::Overloaded());
  if (removed.ok()) return;
  Log(LogLevel::kWarning, "an upload of a shared file stays until the next start",
      {{"upload", upload->record.id}, {"error", removed}});
}

void ShareStore::OpenUpload(v1::SharedFile file, bool from_parent, const std::string& opener,
                            OpenDone done) {
  file.DiscardUnknownFields();  // of any size, and not signed
  if (ExpiryOf(file) <= clock_.Now()) return done(errors::ShareExpired(file.key()));
  if (file.size() > options_.max_size) {
    return done(errors::ShareTooLarge(file.size(), options_.max_size));
  }
  Opened opened;
  absl::StatusOr<ShareUpload> upload = ShareUpload();
  {
    MutexLock change(change_mutex_);
    const auto found = Find(file.key());
    // A file that was in transit for longer does not replace one that was shared later.
    const bool superseded =
        found && found->share.file().sign_time().seconds() > file.sign_time().seconds() &&
        !SameBytes(found->share.file(), file);
    if (superseded) {
      upload = errors::ShareSuperseded(file.key());
    } else if (opened.existing = FindSameContent(file, from_parent, opener); !opened.existing) {
      upload = Admit(file, from_parent, opener);
    }
  }
  if (!upload.ok()) return done(upload.status());
  if (opened.existing) return done(std::move(opened));
  opened.upload_id = upload->record.id;
  opened.epoch = upload->epoch;
  auto shared = std::make_shared<OpenDone>(std::move(done));
  const auto session = upload->session;
  const bool queued = session->strand().Post([session, u = ToUpload(*upload), opened, shared] {
    const auto offset = session->Reopen(u, UploadPeer());
    if (!offset.ok()) return (*shared)(offset.status());
    Opened answer = opened;
    answer.offset = *offset;
    (*shared)(std::move(answer));
  });
  if (!queued) (*shared)(errors::Overloaded());
}

// Returns a file with the same content that this relay or a child relay has. Stores its newer
// signature first.
std::optional<ShareRecord> ShareStore::FindSameContent(const v1::SharedFile& file, bool from_parent,
                                                       const std::string& opener) {
  const auto found = Find(file.key());
  if (!found || !SameBytes(found->share.file(), file) || found->removing) return std::nullopt;
  const bool held = found->stage == ShareStage::kHeld;
  // A child relay that sends it back deletes its copy when this relay answers that it exists.
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
  Log(LogLevel::kError, "a newer signature of a shared file cannot be stored",
      {{"error", updated}});
  return std::nullopt;
}

absl::StatusOr<ShareUpload> ShareStore::Admit(const v1::SharedFile& file, bool from_parent,
                                              const std::string& opener) {
  auto existing = records_.UploadOf(file.key());
  const bool same_sender = existing && existing->record.child == opener;
  // Two senders that replace each other would never complete a large file. Sweep ends a stalled
  // stream.
  if (existing && !same_sender && existing->session->attached() &&
      file.sign_time().seconds() <= existing->record.share.file().sign_time().seconds()) {
    return errors::ShareArriving(file.key());
  }
  if (existing && (!same_sender || !SameBytes(existing->record.share.file(), file))) {
    DropLocked(file.key());
    existing.reset();
  }
  ShareRecord record;
  if (existing) {
    record = existing->record;
  } else {
    if (const auto forgotten = records_.FindForgettable(file)) {
      RETURN_IF_ERROR(Forget(*forgotten));
    }
    if (const absl::Status s = records_.CheckLimits(file); !s.ok()) {
      if (ReasonOf(s) == "SHARE_QUOTA") counters_->refused.Add();
      return s;
    }
    record.id = RandomHex(kIdBytes);
    record.from_parent = from_parent;
    record.child = opener;
    record.share.set_state(v1::SHARE_STATE_IN_TRANSIT);
    record.share.set_relay(options_.relay);
    record.share.mutable_change_time()->set_seconds(absl::ToUnixSeconds(clock_.Now()));
  }
  *record.share.mutable_file() = file;
  RETURN_IF_ERROR(table_->Put(record));
  if (!existing) AddUpload(record);
  return *records_.ReopenUpload(record);
}

absl::StatusOr<std::shared_ptr<UploadSession>> ShareStore::FindUpload(
    const std::string& id, const std::string& opener) const {
  const auto upload = records_.FindUpload(id);
  if (!upload || upload->record.child != opener) return errors::UploadNotFound(id);
  return upload->session;
}

// The source signed the file: the signature was verified when the upload was opened.
absl::Status ShareStore::CheckSignature(const VerifiedResult&) const { return absl::OkStatus(); }

absl::Status ShareStore::Reserve(std::string_view id, int64_t size) {
  const auto upload = records_.FindUpload(id);
  if (!upload) return errors::UploadNotFound(id);
  const int64_t announced = upload->record.share.file().size();
  return size <= announced ? absl::OkStatus() : errors::SizeMismatch(announced, size);
}

void ShareStore::Complete(UploadSession& session, const UploadAttachment& attachment,
                          CompleteDone done) {
  v1::ShareKey key;
  UploadFinish finish;
  if (const auto upload = records_.FindUpload(session.id())) {
    const v1::SharedFile& file = upload->record.share.file();
    key = file.key();
    finish.size = file.size();
    finish.sha256 = file.sha256();
  }
  session.Complete(
      attachment, finish,
      [this, key, id = session.id(), done = std::move(done)](const auto& result) mutable {
        // Other content than was signed cannot be resumed.
        const auto upload = records_.FindUpload(id);
        const bool ended = upload && upload->session->ended();
        if (ended || absl::IsDataLoss(result.status())) DropUpload(key);
        if (!result.ok()) return done(result.status());
        auto held = Find(key);
        if (!held) return done(errors::ShareNotFound(key));
        done(std::move(held->share));
      });
}

void ShareStore::Commit(VerifiedResult verified, Done done) {
  absl::Status held;
  {
    MutexLock change(change_mutex_);
    held = MakeHeld(verified);
  }
  if (!held.ok()) return done(held);
  counters_->accepted.Add();
  done(std::move(verified.result));
}

absl::Status ShareStore::MakeHeld(const VerifiedResult& verified) {
  const auto upload = records_.FindUpload(verified.upload_id);
  if (!upload) return errors::TakenOver(verified.upload_id);
  ShareRecord is = upload->record;
  const auto before = records_.Stored(is.key());
  is.stage = ShareStage::kHeld;
  is.child.clear();
  is.unreported = is.from_parent;
  // The parent still waits for reports of a file that it offered and that comes back.
  is.from_parent = is.from_parent || (before != nullptr && before->from_parent &&
                                      SameBytes(before->share.file(), is.share.file()));
  is.share.mutable_change_time()->set_seconds(absl::ToUnixSeconds(clock_.Now()));
  const ResultRecord& result = verified.result;
  RETURN_IF_ERROR(table_->PutHeld(is, result.blob.empty() ? result.body : std::string(),
                                  before == nullptr ? std::string() : before->id));
  records_.RemoveUpload(is.key());
  records_.Put(is);
  upload->session->Close();
  if (before == nullptr) return absl::OkStatus();
  if (const absl::Status removed = blobs_->Remove(before->blob()); !removed.ok()) {
    Log(LogLevel::kWarning, "bytes of a replaced shared file stay until the next start",
        {{"error", removed}});
  }
  return absl::OkStatus();
}

absl::Status ShareStore::Receive(const v1::SharedFile& file, bool from_parent,
                                 const std::string& opener, ReadFrom read) {
  // Calls `work` on the strand and returns what it passes to its callback.
  using Answer = std::promise<absl::Status>;
  const auto on_strand = [](UploadSession& session, absl::AnyInvocable<void(Answer&)> work) {
    auto answer = std::make_shared<Answer>();
    auto future = answer->get_future();
    if (!session.strand().Post([answer, work = std::move(work)]() mutable { work(*answer); })) {
      return errors::Overloaded();
    }
    return future.get();
  };
  std::promise<absl::StatusOr<Opened>> opening;
  OpenUpload(file, from_parent, opener,
             [&](absl::StatusOr<Opened> opened) { opening.set_value(std::move(opened)); });
  ASSIGN_OR_RETURN(const auto opened, opening.get_future().get());
  if (opened.existing) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto session, FindUpload(opened.upload_id, opener));
  UploadAttachment attachment;
  RETURN_IF_ERROR(on_strand(*session, [&](Answer& answer) {
    const auto attached = session->Attach(opened.epoch, UploadPeer(), [](const absl::Status&) {});
    if (attached.ok()) attachment = *attached;
    answer.set_value(attached.status());
  }));
  int64_t offset = opened.offset;
  absl::Status status = read(offset, [&](std::string_view piece) {
    UploadChunk chunk;
    chunk.offset = offset;
    chunk.raw_size = static_cast<int64_t>(piece.size());
    chunk.crc32c = Crc32c(piece);
    chunk.data = std::string(piece);
    offset += chunk.raw_size;
    return on_strand(*session,
                     [&session, attachment, c = std::move(chunk)](Answer& answer) mutable {
                       answer.set_value(session->Append(attachment, std::move(c)).status());
                     });
  });
  if (status.ok()) {
    auto answer = std::make_shared<Answer>();
    auto future = answer->get_future();
    const bool queued = session->strand().Post([this, session, attachment, answer] {
      Complete(*session, attachment,
               [answer](const auto& share) { answer->set_value(share.status()); });
    });
    status = queued ? future.get() : errors::Overloaded();
  }
  if (!session->strand().Post([session, attachment] { session->Detach(attachment); })) {
    Log(LogLevel::kWarning, "the files of an upload stay open until the next sweep");
  }
  return status;
}

}  // namespace muster

#include "services/aggregator/uploads/uploads.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/log.h"
#include "services/common/base/random_id.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/results.h"
#include "services/common/errors/runs.h"
#include "services/common/upload/attempt.h"

namespace muster {
namespace {

using Verdict = OpenUpload::Verdict;

absl::Status Refusal(const OpenUpload::Result& outcome, const UploadRecord& upload,
                     int64_t max_run_bytes) {
  switch (outcome.verdict) {
    case Verdict::kOpen:
    case Verdict::kCommitted:
      return absl::OkStatus();
    case Verdict::kNotPlanned:
      return errors::PairNotPlanned(upload.key.run, upload.key.plugin, upload.key.node);
    case Verdict::kRunNotFound:
      return errors::RunNotFound(upload.key.run);
    case Verdict::kSealed:
      return errors::RunSealed(upload.key.run);
    case Verdict::kCancelled:
      return errors::RunCancelled(upload.key.run);
    case Verdict::kStaleAttempt:
      return StaleAttempt(upload.attempt, outcome.newest_attempt);
    case Verdict::kRunFull:
      return errors::RunFull(upload.key.run, outcome.run_bytes, upload.size, max_run_bytes);
  }
  return absl::InternalError("unknown verdict");
}

// A relay names attempts of its nodes without a proof, and a credential for any node those of
// others. A spooled result carries the signature of its node.
bool IsAttemptProven(const UploadRecord& upload, const UploadPeer& opener, bool node_signed) {
  const bool relayed = opener.via && RoleOf(*opener.via) == Role::kRelay;
  return node_signed || !(relayed || upload.delivery.node_unproven);
}

}  // namespace

Uploads::Uploads(StateStore& store, BlobStore& blobs, ResultCommitter& committer, Executor& disk,
                 const Clock& clock, OpenStreams& streams, Limits limits)
    : store_(store),
      blobs_(blobs),
      disk_(disk),
      clock_(clock),
      limits_(limits),
      quota_(blobs, streams, limits),
      sink_(committer, quota_) {}

absl::Status Uploads::Recover() {
  ASSIGN_OR_RETURN(const auto open, store_.OpenUploads(""));
  std::unordered_map<std::string, const UploadRecord*> known;
  for (const UploadRecord& upload : open) known.emplace(upload.id, &upload);
  ASSIGN_OR_RETURN(const auto staged, blobs_.ListStaged());
  for (const std::string& id : staged) {
    if (const auto it = known.find(id); it != known.end()) {
      ASSIGN_OR_RETURN(const int64_t size, blobs_.StagedSize(id));
      quota_.Restore(*it->second, size);
      continue;
    }
    RETURN_IF_ERROR(blobs_.DiscardStaged(id));
    Log(LogLevel::kInfo, "removed staged bytes that belong to no upload", {{"staged", id}});
  }
  return absl::OkStatus();
}

void Uploads::Open(UploadRecord upload, const UploadPeer& opener,
                   std::optional<absl::Time> signed_at, Opened opened) {
  upload.proven = IsAttemptProven(upload, opener, signed_at.has_value());
  BeginOpening(std::make_shared<Opening>(
      Opening{std::move(upload), opener, signed_at, std::move(opened), {}}));
}

// Reserves a place for the session, unless the pair has one: interrupted uploads keep theirs.
absl::Status Uploads::ReserveSession(Opening& opening) {
  auto ticket = quota_.ReserveSession(opening.opener.identity, opening.upload.key.run);
  if (ticket.ok()) {
    opening.ticket = *std::move(ticket);
    return absl::OkStatus();
  }
  {
    MutexLock lock(mutex_);
    const auto of_pair = ids_.lower_bound({opening.upload.key, ""});
    if (of_pair != ids_.end() && of_pair->first == opening.upload.key) return absl::OkStatus();
  }
  return ticket.status();
}

// Returns whether a stream is attached to an upload of the pair that its owner opened or signed.
bool Uploads::OwnerDelivers(const ResultKey& key) const {
  MutexLock lock(mutex_);
  for (auto it = ids_.lower_bound({key, ""}); it != ids_.end() && it->first == key; ++it) {
    const OpenSession& open = sessions_.at(it->second);
    if (open.proven && open.session->attached()) return true;
  }
  return false;
}

void Uploads::BeginOpening(const std::shared_ptr<Opening>& opening) {
  UploadRecord& upload = opening->upload;
  upload.id = RandomHex(16);
  upload.opened_at = absl::ToUnixMicros(clock_.Now());
  upload.expires_at = upload.opened_at + absl::ToInt64Microseconds(limits_.expiry);
  absl::Status valid = CheckAttempt(upload.attempt, clock_.Now());
  valid.Update(quota_.CheckSize(upload.size));
  if (!valid.ok()) return opening->Answer(valid);
  if (!upload.proven && OwnerDelivers(upload.key)) {
    return opening->Answer(errors::UploadInUse(upload.key.plugin, upload.key.node));
  }
  if (const absl::Status reserved = ReserveSession(*opening); !reserved.ok()) {
    return opening->Answer(reserved);
  }
  store_.Apply(OpenUpload{upload, upload.opened_at, limits_.max_run_bytes},
               [this, opening](absl::StatusOr<OpenUpload::Result> outcome) {
                 if (!outcome.ok()) return opening->Answer(outcome.status());
                 HandleStored(opening, *std::move(outcome));
               });
}

// Runs on the store's thread.
void Uploads::HandleStored(const std::shared_ptr<Opening>& opening, OpenUpload::Result outcome) {
  if (const absl::Status refusal = Refusal(outcome, opening->upload, limits_.max_run_bytes);
      !refusal.ok()) {
    return opening->Answer(refusal);
  }
  if (outcome.verdict == Verdict::kCommitted) return AnswerCommitted(opening, *outcome.committed);
  if (!outcome.abandoned.empty()) {
    // The new upload takes the place of the earlier one.
    Ticket freed =
        Abandon(outcome.abandoned, opening->upload, errors::TakenOver(outcome.abandoned));
    if (!opening->ticket) opening->ticket = std::move(freed);
  }
  const std::shared_ptr<UploadSession> session = Session(outcome.upload, opening.get());
  const bool queued =
      session->strand().Post([this, opening, session, outcome = std::move(outcome)] {
        HandleReopened(opening, outcome,
                       session->Reopen(outcome.upload, opening->opener, opening->signed_at,
                                       outcome.reclaimed));
      });
  if (!queued) opening->Answer(errors::Overloaded());
}

// Runs on the session's strand.
void Uploads::HandleReopened(const std::shared_ptr<Opening>& opening,
                             const OpenUpload::Result& outcome,
                             const absl::StatusOr<int64_t>& offset) {
  const std::string& id = outcome.upload.id;
  if (absl::IsNotFound(offset.status()) && !outcome.created) {
    // The stored bytes are not those of the sender: the upload cannot be resumed.
    return store_.Apply(AbandonUpload{id},
                        [this, opening, id](const absl::StatusOr<AbandonUpload::Result>& result) {
                          if (!result.ok()) return opening->Answer(result.status());
                          Forget(id);
                          BeginOpening(opening);
                        });
  }
  if (!offset.ok()) {
    const bool taken_over = absl::IsAborted(offset.status());
    if (!outcome.created || taken_over) return opening->Answer(offset.status());
    // A later open of the same attempt must not find the size of the refused one.
    return store_.Apply(AbandonUpload{id},
                        [this, opening, id, refusal = offset.status()](
                            const absl::StatusOr<AbandonUpload::Result>& result) {
                          if (result.ok()) Abandon(id, opening->upload, errors::TakenOver(id));
                          opening->Answer(refusal);
                        });
  }
  OpenedUpload opened;
  opened.id = id;
  opened.epoch = outcome.upload.epoch;
  opened.offset = *offset;
  opened.pace = PaceOf(quota_.sessions());
  opened.expires_at = outcome.upload.expires_at;
  opening->Answer(std::move(opened));
}

void Uploads::AnswerCommitted(const std::shared_ptr<Opening>& opening,
                              const ResultRecord& committed) {
  const UploadRecord& upload = opening->upload;
  const bool differs = (!upload.sha256.empty() && upload.sha256 != committed.sha256) ||
                       (upload.size >= 0 && upload.size != committed.size);
  if (!differs || upload.is_error) {
    OpenedUpload opened;
    opened.committed = committed;
    return opening->Answer(std::move(opened));
  }
  AuditRecord record;
  record.at = upload.opened_at;
  record.kind = AuditKind::kConflict;
  record.SetActor(RefusalActor(upload.delivery, upload.proven));
  record.key = upload.key;
  record.text = absl::StrCat("refused sha256 ", ToHex(upload.sha256), ", size ", upload.size);
  store_.Apply(AppendAudit{std::move(record)},
               [opening](const absl::StatusOr<AppendAudit::Result>& result) {
                 const ResultKey& key = opening->upload.key;
                 opening->Answer(result.ok() ? errors::ResultConflict(key.plugin, key.node)
                                             : result.status());
               });
}

// Ends the session of an upload that has no row any more. Returns its ticket.
Uploads::Ticket Uploads::Abandon(const std::string& id, const UploadRecord& upload,
                                 const absl::Status& why) {
  UploadRecord abandoned = upload;
  abandoned.id = id;
  const std::shared_ptr<UploadSession> session = Session(abandoned);
  const bool queued = session->strand().Post([session, why] { session->Discard(why); });
  if (!queued)
    Log(LogLevel::kWarning, "staged bytes are kept until the next start", {{"upload", id}});
  return Remove(id);
}

// Returns the session of an upload, which keeps `ticket` if it is new.
std::shared_ptr<UploadSession> Uploads::Session(const UploadRecord& upload, Opening* opening) {
  MutexLock lock(mutex_);
  OpenSession& open = sessions_[upload.id];
  if (open.session == nullptr) {
    open.session = std::make_shared<UploadSession>(upload, blobs_, sink_, disk_, clock_);
    ids_.emplace(upload.key, upload.id);
  }
  quota_.Add(upload);
  if (opening != nullptr) {
    open.proven = opening->upload.proven;
    if (!open.ticket) open.ticket = std::exchange(opening->ticket, std::nullopt);
  }
  return open.session;
}

absl::StatusOr<std::shared_ptr<UploadSession>> Uploads::Find(std::string_view id) const {
  MutexLock lock(mutex_);
  const auto it = sessions_.find(std::string(id));
  if (it == sessions_.end()) return errors::UploadNotFound(id);
  return it->second.session;
}

void Uploads::Forget(const std::string& id) { Remove(id); }

Uploads::Ticket Uploads::Remove(const std::string& id) {
  MutexLock lock(mutex_);
  const auto it = sessions_.find(id);
  if (it == sessions_.end()) return std::nullopt;
  Ticket ticket = std::move(it->second.ticket);
  ids_.erase({it->second.session->key(), id});
  sessions_.erase(it);
  quota_.Remove(id);
  return ticket;
}

std::vector<std::shared_ptr<UploadSession>> Uploads::OfRun(const std::string& run) const {
  std::vector<std::shared_ptr<UploadSession>> found;
  MutexLock lock(mutex_);
  for (auto it = ids_.lower_bound({{run, "", ""}, ""}); it != ids_.end() && it->first.run == run;
       ++it) {
    found.push_back(sessions_.at(it->second).session);
  }
  return found;
}

bool Uploads::Receives(const std::string& run) const {
  const auto sessions = OfRun(run);
  return std::ranges::any_of(sessions, [](const auto& session) { return session->attached(); });
}

}  // namespace muster

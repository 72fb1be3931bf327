// The way into the spool.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/log.h"
#include "services/common/base/random_id.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/relay.h"
#include "services/common/errors/results.h"
#include "services/common/errors/runs.h"
#include "services/common/identity/result_signature.h"
#include "services/common/rpc/limits.h"
#include "services/common/rpc/proto_time.h"
#include "services/relay/spool/spool.h"
#include "services/relay/spool/spool_internal.h"

namespace muster {
namespace {

// Space is taken in such steps by an upload that did not name its size.
constexpr int64_t kStep = int64_t{4} << 20;

v1::OpenUploadResponse Answer(const std::string& id, int64_t epoch, int64_t offset,
                              absl::Time expires) {
  v1::OpenUploadResponse response;
  response.set_upload_id(id);
  response.set_epoch(epoch);
  response.set_offset(offset);
  response.set_chunk_max(kChunkMaxSmall);
  response.set_window(kUploadWindow);
  ToProto(expires, response.mutable_expire_time());
  response.set_zstd_accepted(true);
  return response;
}

}  // namespace

// Nobody may fill it for all others.
absl::Status Spool::CheckRoom(const std::string& node, int64_t bytes, int64_t entries) const {
  const auto queue = queues_.find(node);
  const int64_t own_bytes = queue == queues_.end() ? 0 : queue->second.bytes;
  const int64_t own_entries = queue == queues_.end() ? 0 : queue->second.entries;
  std::string limit;
  if (bytes > options_.quota_bytes - bytes_) {
    limit = absl::StrCat("it may hold ", options_.quota_bytes, " bytes");
  } else if (bytes > options_.quota_bytes / 4 - own_bytes) {
    limit = absl::StrCat("of one node it may hold ", options_.quota_bytes / 4, " bytes");
  } else if (static_cast<int64_t>(entries_.size()) + entries > options_.max_entries) {
    limit = absl::StrCat("it may hold ", options_.max_entries, " results");
  } else if (own_entries + entries > std::max<int64_t>(1, options_.max_entries / 4)) {
    limit = absl::StrCat("of one node it may hold ", std::max<int64_t>(1, options_.max_entries / 4),
                         " results");
  }
  if (limit.empty()) return absl::OkStatus();
  figures_->refused.Add();
  return errors::SpoolFull(limit);
}

// The entry of this key and attempt, made if there is none.
absl::StatusOr<std::shared_ptr<Spool::Entry>> Spool::Admit(const v1::OpenUploadRequest& request) {
  const v1::ResultDescription& description = request.description();
  const int64_t size = request.has_size() ? request.size() : 0;
  if (const auto it = by_attempt_.find(AttemptName(description)); it != by_attempt_.end()) {
    const std::shared_ptr<Entry> entry = entries_.at(it->second);
    if (!entry->complete) return entry;
    const bool same = (!request.has_size() || size == entry->size) &&
                      (request.sha256().empty() || request.sha256() == entry->sha256);
    if (same) return entry;
    return errors::StaleAttempt(description.attempt());
  }
  if (size > options_.quota_bytes) return errors::SpoolFull("the result is larger than all of it");
  const int64_t bytes = size + kOverhead;
  RETURN_IF_ERROR(CheckRoom(description.key().node(), bytes, 1));
  auto entry = std::make_shared<Entry>();
  entry->id = RandomHex(16);
  entry->description = description;
  entry->session = std::make_shared<UploadSession>(ToRecord(request, entry->id, 0), *blobs_, *this,
                                                   disk_, clock_);
  entries_[entry->id] = entry;
  by_attempt_[AttemptName(description)] = entry->id;
  ++queues_[entry->node()].entries;
  Charge(*entry, bytes);
  Measure();
  return entry;
}

void Spool::OpenUpload(const v1::OpenUploadRequest& request, const UploadPeer& opener,
                       Opened opened) {
  std::shared_ptr<Entry> entry;
  std::optional<v1::OpenUploadResponse> complete;
  UploadRecord upload;
  absl::Status refused;
  {
    MutexLock lock(mutex_);
    auto admitted = Admit(request);
    if (admitted.ok()) {
      entry = *std::move(admitted);
      ++entry->epoch;
      entry->touched = clock_.Now();
      if (entry->complete) {
        complete = Answer(entry->id, entry->epoch, entry->size, entry->expires);
      } else {
        upload = ToRecord(request, entry->id, entry->epoch);
      }
    } else {
      refused = admitted.status();
    }
  }
  if (entry == nullptr) return opened(refused);
  if (complete) return opened(*std::move(complete));
  Begin(entry, upload, opener, std::move(opened));
}

// On the session's strand: its file first, then its bytes.
void Spool::Begin(const std::shared_ptr<Entry>& entry, const UploadRecord& upload,
                  const UploadPeer& opener, Opened opened) {
  auto done = std::make_shared<Opened>(std::move(opened));
  const std::shared_ptr<UploadSession> session = SessionOf(*entry);
  if (session == nullptr) return (*done)(errors::UploadNotFound(entry->id));
  const bool queued = session->strand().Post([this, entry, session, upload, opener, done] {
    if (!entry->recorded) {
      v1::SubmitResultRequest header;
      *header.mutable_description() = entry->description;
      header.mutable_spooled()->set_size(std::max<int64_t>(upload.size, 0));
      const absl::Status written =
          WriteFileDurably(ops_, PathOf(EntryState::kOpen, 0, entry->id), EncodeEntry(header, ""));
      if (!written.ok()) return (*done)(written);
      entry->recorded = true;
    }
    const auto offset = session->Reopen(upload, opener);
    if (!offset.ok()) return (*done)(offset.status());
    (*done)(Answer(entry->id, upload.epoch, *offset, clock_.Now() + options_.idle_after));
  });
  if (!queued) (*done)(errors::Overloaded());
}

absl::Status Spool::Reserve(std::string_view id, int64_t end) {
  MutexLock lock(mutex_);
  const auto entry = FindEntry(id);
  if (entry == nullptr) return errors::UploadNotFound(id);
  const int64_t wanted = end + kOverhead;
  if (wanted <= entry->charged) return absl::OkStatus();
  const int64_t bytes = std::max(wanted, entry->charged + kStep);
  RETURN_IF_ERROR(CheckRoom(entry->node(), bytes - entry->charged, 0));
  Charge(*entry, bytes);
  Measure();
  return absl::OkStatus();
}

absl::Status Spool::CheckSignature(const VerifiedResult& verified) const {
  const ResultRecord& result = verified.result;
  if (result.delivery.signature.empty()) return errors::SignatureRequired(result.key.node);
  const SignedResult said = {result.key.run,   result.key.plugin, result.key.node,
                             verified.attempt, result.size,       result.sha256};
  return VerifyResultSignature(result.delivery.signature, result.delivery.signer_pem, said,
                               options_.fleet, root_, clock_.Now());
}

// Runs on the session's strand, when all bytes were verified and are durable.
void Spool::Commit(VerifiedResult verified, Done done) {
  std::shared_ptr<Entry> entry;
  uint64_t order = 0;
  {
    MutexLock lock(mutex_);
    entry = FindEntry(verified.upload_id);
    if (entry != nullptr && (entry->complete || entry->committing)) entry = nullptr;
    if (entry != nullptr) {
      entry->committing = true;
      order = ++last_order_;
    }
  }
  if (entry == nullptr) return done(errors::UploadNotFound(verified.upload_id));
  if (const absl::Status status = Keep(*entry, order, verified); !status.ok()) {
    {
      MutexLock lock(mutex_);
      entry->committing = false;
    }
    return done(status);
  }
  std::shared_ptr<UploadSession> session;
  {
    MutexLock lock(mutex_);
    session = MakeComplete(*entry, order, verified.result);
  }
  session->Close();
  figures_->taken.Add();
  done(std::move(verified.result));
  if (on_complete_) on_complete_();
}

absl::Status Spool::Keep(const Entry& entry, uint64_t order, const VerifiedResult& verified) {
  const ResultRecord& result = verified.result;
  v1::SubmitResultRequest header;
  *header.mutable_description() = entry.description;
  header.set_crc32c(result.crc32c);
  header.set_sha256(result.sha256);
  v1::SpooledProof& proof = *header.mutable_spooled();
  proof.mutable_signature()->set_value(result.delivery.signature);
  proof.mutable_signature()->set_certificate_chain_pem(result.delivery.signer_pem);
  proof.set_size(result.size);
  proof.set_sha256(result.sha256);
  ToProto(clock_.Now(), proof.mutable_accept_time());
  RETURN_IF_ERROR(
      WriteFileDurably(ops_, PathOf(EntryState::kComplete, order, entry.id),
                       EncodeEntry(header, result.blob.empty() ? result.body : std::string())));
  const absl::Status removed = ops_.Remove(PathOf(EntryState::kOpen, 0, entry.id));
  if (!removed.ok()) Log(LogLevel::kWarning, "a file of the spool stays", {{"error", removed}});
  return absl::OkStatus();
}

// Gives what took the bytes, which is not needed any more.
std::shared_ptr<UploadSession> Spool::MakeComplete(Entry& entry, uint64_t order,
                                                   const ResultRecord& result) {
  entry.committing = false;
  entry.complete = true;
  entry.order = order;
  entry.size = result.size;
  entry.sha256 = result.sha256;
  entry.expires = clock_.Now() + options_.ttl;
  Charge(entry, result.size + kOverhead);
  queues_[entry.node()].ready.push_back(entry.id);
  Measure();
  return std::exchange(entry.session, nullptr);
}

}  // namespace muster

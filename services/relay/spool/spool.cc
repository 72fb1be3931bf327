#include "services/relay/spool/spool.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/random_id.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/utc_text.h"
#include "services/common/errors/results.h"
#include "services/common/errors/runs.h"
#include "services/common/rpc/proto_time.h"
#include "services/common/upload/attempt.h"
#include "services/common/upload/delivery_signature.h"
#include "services/relay/spool/spool_counters.h"

namespace muster {
namespace {

constexpr absl::Duration kStallLimit = absl::Seconds(60);

// A stream follows the open of its upload immediately.
constexpr absl::Duration kFilesIdle = absl::Seconds(10);

UploadRecord ToRecord(const v1::OpenUploadRequest& request, const std::string& id, int64_t epoch) {
  const v1::ResultDescription& description = request.description();
  UploadRecord upload;
  upload.id = id;
  upload.key = {description.key().run(), description.key().plugin(), description.key().node()};
  upload.attempt = description.attempt();
  upload.epoch = epoch;
  upload.size = request.has_size() ? request.size() : -1;
  upload.sha256 = request.sha256();
  upload.media_type = description.media_type();
  upload.file_name = description.file_name();
  upload.is_error = description.is_error();
  return upload;
}

v1::OpenUploadResponse OpenResponse(const SpoolEntry& entry, int64_t offset, const UploadPace& pace,
                                    absl::Time expires) {
  v1::OpenUploadResponse response;
  response.set_upload_id(entry.id);
  response.set_epoch(entry.epoch);
  response.set_offset(offset);
  response.set_chunk_max(pace.chunk_max);
  response.set_window(pace.window);
  ToProto(expires, response.mutable_expire_time());
  response.set_zstd_accepted(true);
  return response;
}

}  // namespace

Spool::Spool(const SpoolOptions& options, Certificate root, std::unique_ptr<SpoolStorage> storage,
             Executor& disk, const Clock& clock, Metrics& metrics)
    : options_(options),
      root_(std::move(root)),
      storage_(std::move(storage)),
      disk_(disk),
      clock_(clock),
      counters_(std::make_unique<SpoolCounters>(metrics)),
      quota_(options.quota_bytes, options.max_entries),
      queue_(clock) {
  metrics.AddSampledGauge("muster_relay_spool_entries", "Uploads and results in the spool.",
                          [this] { return static_cast<double>(quota_.usage().entries); });
  metrics.AddSampledGauge("muster_relay_spool_bytes", "The used part of the quota of the spool.",
                          [this] { return static_cast<double>(quota_.usage().bytes); });
  metrics.AddGauge("muster_relay_spool_max_bytes", "The quota of the spool.")
      .Set(static_cast<double>(options.quota_bytes));
  metrics
      .AddGauge("muster_relay_spool_max_results",
                "The largest number of uploads and results in the spool.")
      .Set(static_cast<double>(options.max_entries));
  metrics.AddSampledGauge("muster_relay_spool_oldest_seconds",
                          "The age of the oldest result in the spool; 0 if there is none.",
                          [this] { return absl::ToDoubleSeconds(queue_.OldestWait()); });
}

Spool::~Spool() = default;

absl::StatusOr<std::unique_ptr<Spool>> Spool::Open(const SpoolOptions& options, Executor& disk,
                                                   const Clock& clock, Metrics& metrics,
                                                   FileOps& ops, FileOps& database_ops) {
  ASSIGN_OR_RETURN(auto root, Certificate::FromPem(options.fleet_ca_pem));
  ASSIGN_OR_RETURN(auto storage,
                   SpoolStorage::Open(options.folder, options.on_fatal, ops, database_ops));
  std::unique_ptr<Spool> spool(
      new Spool(options, std::move(root), std::move(storage), disk, clock, metrics));
  RETURN_IF_ERROR(spool->Recover());
  return spool;
}

absl::Status Spool::Recover() {
  ASSIGN_OR_RETURN(const auto contents, storage_->table().Load());
  for (const std::string& id : contents.damaged) {
    Log(LogLevel::kError, "an entry of the spool is damaged and is removed", {{"id", id}});
    counters_->outcomes.With({"lost"}).Add();
    RETURN_IF_ERROR(storage_->table().Remove(id));
  }
  for (const SpoolRow& row : contents.rows) RecoverEntry(row);
  const auto has_row = [this](const std::string& id) { return Has(id); };
  const auto is_upload = [this](const std::string& id) {
    const auto entry = index_.Find(id);
    return entry && !entry->complete();
  };
  RETURN_IF_ERROR(storage_->RemoveUnknownBytes(is_upload, has_row));
  if (const SpoolQuota::Usage usage = quota_.usage(); usage.entries > 0) {
    Log(LogLevel::kInfo, "the spool holds results of an earlier process",
        {{"entries", usage.entries}, {"bytes", usage.bytes}});
  }
  return absl::OkStatus();
}

void Spool::RecoverEntry(const SpoolRow& row) {
  SpoolEntry entry;
  entry.id = row.id;
  entry.description = row.header.description();
  entry.size = row.header.spooled().size();
  entry.opened = clock_.MonotonicNow();
  if (row.complete) {
    const absl::Time accepted = FromProto(row.header.spooled().accept_time());
    entry.sha256 = row.header.sha256();
    entry.expires = accepted + options_.ttl;
  } else {
    v1::OpenUploadRequest request;
    *request.mutable_description() = entry.description;
    entry.session = MakeSession(entry.id, request);
  }
  // Two rows of one attempt remain if the removal of the first one failed.
  if (!index_.Insert(entry)) {
    Log(LogLevel::kWarning, "a second entry of the same result is removed", {{"id", row.id}});
    storage_->Remove(entry);
    return;
  }
  quota_.Restore(entry.id, entry.node(), entry.size);
  if (row.complete)
    queue_.Enqueue(entry.node(), entry.id, FromProto(row.header.spooled().accept_time()));
}

std::shared_ptr<UploadSession> Spool::MakeSession(const std::string& id,
                                                  const v1::OpenUploadRequest& request) {
  return std::make_shared<UploadSession>(ToRecord(request, id, 0), storage_->blobs(), *this, disk_,
                                         clock_);
}

absl::StatusOr<SpoolEntry> Spool::AddEntry(const v1::OpenUploadRequest& request) {
  SpoolEntry entry;
  entry.id = RandomHex(16);
  entry.description = request.description();
  entry.session = MakeSession(entry.id, request);
  const absl::Status charged =
      quota_.Add(entry.id, entry.node(), request.has_size() ? request.size() : 0);
  if (!charged.ok()) {
    counters_->refused.Add();
    return charged;
  }
  // Another call may have added the attempt meanwhile.
  if (!index_.Insert(entry)) quota_.Release(entry.id);
  ASSIGN_OR_RETURN(auto existing, index_.Reopen(request, clock_.MonotonicNow()));
  if (existing) return *std::move(existing);
  return errors::UploadNotFound(entry.id);
}

void Spool::OpenUpload(const v1::OpenUploadRequest& request, const UploadPeer& opener,
                       Opened opened) {
  const absl::Status valid = CheckAttempt(request.description().attempt(), clock_.Now());
  if (!valid.ok()) return opened(valid);
  auto entry = index_.Reopen(request, clock_.MonotonicNow());
  if (entry.ok() && !*entry) entry = AddEntry(request);
  if (!entry.ok()) return opened(entry.status());
  if ((*entry)->complete())
    return opened(OpenResponse(**entry, (*entry)->size, Pace(), (*entry)->expires));
  Begin(**entry, request, opener, std::move(opened));
}

// Entries that wait for their delivery are no uploads any more.
UploadPace Spool::Pace() const { return PaceOf(quota_.usage().entries - queue_.size()); }

// The row is written before the answer, and so before the upload publishes any bytes.
void Spool::Begin(const SpoolEntry& entry, const v1::OpenUploadRequest& request,
                  const UploadPeer& opener, Opened opened) {
  auto done = std::make_shared<Opened>(std::move(opened));
  const bool queued = entry.session->strand().Post(
      [this, entry, upload = ToRecord(request, entry.id, entry.epoch), opener, done] {
        const auto offset = entry.session->Reopen(upload, opener);
        if (absl::IsNotFound(offset.status())) {
          // The session ended because its content was not the announced one.
          DiscardUpload(entry.description);
        }
        if (!offset.ok()) return (*done)(offset.status());
        v1::SubmitResultRequest header;
        *header.mutable_description() = entry.description;
        header.mutable_spooled()->set_size(std::max<int64_t>(upload.size, 0));
        const absl::Status added = storage_->table().AddUpload(entry.id, header);
        if (!added.ok()) return (*done)(added);
        (*done)(OpenResponse(entry, *offset, Pace(), clock_.Now() + options_.idle_after));
      });
  if (!queued) (*done)(errors::Overloaded());
}

std::optional<v1::Spooled> Spool::Receipt(std::string_view id) const {
  const auto entry = index_.Find(id);
  if (!entry || !entry->complete()) return std::nullopt;
  v1::Spooled spooled;
  spooled.set_relay(options_.relay);
  ToProto(entry->expires, spooled.mutable_expire_time());
  return spooled;
}

bool Spool::IsComplete(std::string_view id, std::string_view node) const {
  const auto entry = index_.Find(id);
  return entry && entry->complete() && entry->node() == node;
}

absl::StatusOr<std::shared_ptr<UploadSession>> Spool::Find(std::string_view id,
                                                           std::string_view node) const {
  const auto entry = index_.Find(id);
  // Other nodes do not learn whether the upload exists.
  if (!entry || entry->node() != node || entry->complete()) return errors::UploadNotFound(id);
  return entry->session;
}

absl::Status Spool::Reserve(std::string_view id, int64_t size) {
  const absl::Status reserved = quota_.Grow(id, size);
  if (absl::IsResourceExhausted(reserved)) counters_->refused.Add();
  return reserved;
}

void Spool::Release(std::string_view id) { quota_.Set(id, 0); }

absl::Status Spool::CheckSignature(const VerifiedResult& verified) const {
  const ResultRecord& result = verified.result;
  if (result.delivery.signature.empty()) return errors::SignatureRequired(result.key.node);
  return VerifyDeliverySignature(verified, options_.fleet, root_, clock_.Now());
}

// Runs on the strand of the session. The bytes are verified. Those in a blob are durable.
void Spool::Commit(VerifiedResult verified, Done done) {
  const auto entry = index_.BeginCommit(verified.upload_id);
  if (!entry) return done(errors::UploadNotFound(verified.upload_id));
  const ResultRecord& result = verified.result;
  const absl::Time accepted = clock_.Now();
  v1::SubmitResultRequest header;
  *header.mutable_description() = entry->description;
  // As the node signed them: a later open may have changed those of the entry.
  header.mutable_description()->set_media_type(result.media_type);
  header.mutable_description()->set_file_name(result.file_name);
  header.set_crc32c(result.crc32c);
  header.set_sha256(result.sha256);
  v1::SpooledProof& proof = *header.mutable_spooled();
  proof.mutable_signature()->set_value(result.delivery.signature);
  proof.mutable_signature()->set_certificate_chain_pem(result.delivery.signer_pem);
  proof.set_size(result.size);
  proof.set_sha256(result.sha256);
  proof.set_is_error(entry->description.is_error());
  ToProto(accepted, proof.mutable_accept_time());
  const absl::Status stored = storage_->table().Complete(
      entry->id, header, result.blob.empty() ? result.body : std::string());
  if (!stored.ok()) {
    index_.CancelCommit(entry->id);
    return done(stored);
  }
  quota_.Set(entry->id, result.size);
  index_.EndCommit(entry->id, result.size, result.sha256, accepted + options_.ttl);
  queue_.Enqueue(entry->node(), entry->id, accepted);
  entry->session->Close();
  counters_->accepted.Add();
  done(std::move(verified.result));
  if (on_complete_) on_complete_();
}

bool Spool::Holds(const v1::ResultDescription& description) const {
  return index_.HasDeliverable(description);
}

void Spool::DiscardUpload(const v1::ResultDescription& description) {
  if (const auto entry = index_.RemoveUpload(description)) Discard(*entry);
}

// Ends the stream of an upload that left the index, and removes its bytes. The bytes may be
// published: a commit may have failed after that.
void Spool::Discard(const SpoolEntry& entry) {
  quota_.Release(entry.id);
  const bool queued = entry.session->strand().Post([this, entry] {
    entry.session->Discard(errors::UploadNotFound(entry.id));
    storage_->Remove(entry);
  });
  if (queued) return;
  Log(LogLevel::kWarning, "an upload stays in the spool until the next start", {{"id", entry.id}});
}

void Spool::Sweep() {
  for (const auto& session : index_.sessions()) {
    session->EndStalledStream(kStallLimit);
    session->CloseIdleFiles(kFilesIdle);
  }
  const absl::Duration idle_since = clock_.MonotonicNow() - options_.idle_after;
  for (const SpoolEntry& entry : index_.RemoveIdleUploads(idle_since)) Discard(entry);
  for (const std::string& id : storage_->RetryRemovals()) quota_.Release(id);
}

std::optional<SpoolDelivery> Spool::Dequeue() {
  while (const auto id = queue_.Dequeue()) {
    // A result stays in the index until its delivery ends.
    const SpoolEntry entry = *index_.Find(*id);
    SpoolDelivery delivery;
    delivery.id = *id;
    const absl::Status read = ReadDelivery(entry, &delivery);
    if (read.ok()) return delivery;
    if (IsProvenLoss(read)) {
      Log(LogLevel::kError, "a result of the spool is lost",
          {{"run", entry.description.key().run()},
           {"plugin", entry.description.key().plugin()},
           {"node", entry.node()},
           {"error", read}});
      Finish(delivery, "lost");
      continue;
    }
    Log(LogLevel::kWarning, "a result of the spool cannot be read now",
        {{"id", delivery.id}, {"error", read}});
    Requeue(delivery, read);
  }
  return std::nullopt;
}

absl::Status Spool::ReadDelivery(const SpoolEntry& entry, SpoolDelivery* delivery) {
  ASSIGN_OR_RETURN(delivery->header, storage_->table().ReadHeader(entry.id));
  if (clock_.Now() >= entry.expires) {
    delivery->expired = true;
    delivery->why = absl::StrCat("relay ", options_.relay, " accepted this result at ",
                                 UtcText(entry.expires - options_.ttl),
                                 " and could not deliver it until ", UtcText(entry.expires));
    return absl::OkStatus();
  }
  const absl::Status status = storage_->CheckSize(entry, delivery->header);
  if (!IsProvenLoss(status)) return status;
  MarkLost(status, delivery);
  return absl::OkStatus();
}

void Spool::MarkLost(const absl::Status& why, SpoolDelivery* delivery) const {
  delivery->expired = delivery->lost = true;
  delivery->why =
      absl::StrCat("relay ", options_.relay, " lost the bytes of this result: ", why.message());
}

void Spool::CheckContent(SpoolDelivery* delivery) {
  const auto entry = index_.Find(delivery->id);
  if (!entry) return;
  absl::Status status = storage_->CheckContent(*entry, delivery->header);
  // A second read tells damaged bytes from a read that failed once.
  if (IsProvenLoss(status)) status = storage_->CheckContent(*entry, delivery->header);
  if (IsProvenLoss(status)) MarkLost(status, delivery);
}

absl::StatusOr<std::unique_ptr<ByteSource>> Spool::Read(const SpoolDelivery& delivery,
                                                        int64_t offset) {
  const auto entry = index_.Find(delivery.id);
  if (!entry) return absl::NotFoundError(absl::StrCat("the spool has no entry ", delivery.id));
  return storage_->Read(*entry, delivery.header, offset);
}

void Spool::Finish(const SpoolDelivery& delivery, std::string_view outcome) {
  const auto entry = index_.Find(delivery.id);
  if (!entry) return;
  // An entry that cannot be removed now stays charged until Sweep has removed it. A restart before
  // that delivers the result again, without effect.
  const bool removed = storage_->Remove(*entry);
  counters_->outcomes.With({std::string(outcome)}).Add();
  index_.RemoveResult(entry->id);
  if (removed) quota_.Release(entry->id);
  queue_.Finish(entry->node());
}

void Spool::Requeue(const SpoolDelivery& delivery, const absl::Status& why) {
  // Without a connection the node's own delivery would fail as well.
  if (!absl::IsUnavailable(why)) index_.NoteFailedDelivery(delivery.id);
  if (const auto entry = index_.Find(delivery.id)) {
    queue_.Requeue(entry->node(), RetryAfterOf(why));
  }
}

}  // namespace muster

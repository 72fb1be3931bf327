#include "services/relay/spool/spool.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/log.h"
#include "services/common/base/random_id.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/string_source.h"
#include "services/common/blob/files/files_blob_store.h"
#include "services/common/errors/results.h"
#include "services/common/errors/runs.h"
#include "services/common/identity/result_signature.h"
#include "services/common/rpc/limits.h"
#include "services/common/rpc/proto_time.h"
#include "services/relay/spool/spool_counters.h"

namespace muster {
namespace {

constexpr absl::Duration kStallLimit = absl::Seconds(60);

// The wait before the next try to read a result that cannot be read now.
constexpr absl::Duration kReadRetry = absl::Seconds(10);

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

v1::OpenUploadResponse OpenResponse(const SpoolEntry& entry, int64_t offset, absl::Time expires) {
  v1::OpenUploadResponse response;
  response.set_upload_id(entry.id);
  response.set_epoch(entry.epoch);
  response.set_offset(offset);
  response.set_chunk_max(kChunkMaxSmall);
  response.set_window(kUploadWindow);
  ToProto(expires, response.mutable_expire_time());
  response.set_zstd_accepted(true);
  return response;
}

std::string InWords(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone());
}

// Returns whether a failed read proves that the bytes are lost. Any other failure may pass: no file
// descriptor, a disk that fails now.
bool IsProvenLoss(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsDataLoss(status) || absl::IsOutOfRange(status);
}

}  // namespace

Spool::Spool(const SpoolOptions& options, Certificate root, std::unique_ptr<SpoolTable> table,
             std::unique_ptr<BlobStore> blobs, Executor& disk, const Clock& clock, Metrics& metrics)
    : options_(options),
      root_(std::move(root)),
      table_(std::move(table)),
      blobs_(std::move(blobs)),
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
                                                   FileOps& ops) {
  ASSIGN_OR_RETURN(auto root, Certificate::FromPem(options.fleet_ca_pem));
  RETURN_IF_ERROR(MakeFolders(ops, options.folder));
  // The lock of the blobs keeps other processes from the database, too.
  FilesBlobStoreOptions blob_options;
  blob_options.root = options.folder + "/blobs";
  ASSIGN_OR_RETURN(auto blobs, OpenFilesBlobStore(std::move(blob_options), ops));
  ASSIGN_OR_RETURN(auto table, SpoolTable::Open(options.folder + "/spool.db"));
  std::unique_ptr<Spool> spool(new Spool(options, std::move(root), std::move(table),
                                         std::move(blobs), disk, clock, metrics));
  RETURN_IF_ERROR(spool->Recover());
  return spool;
}

absl::Status Spool::Recover() {
  ASSIGN_OR_RETURN(const auto contents, table_->Load());
  for (const std::string& id : contents.damaged) {
    Log(LogLevel::kError, "an entry of the spool is damaged and is removed", {{"id", id}});
    counters_->outcomes.With({"lost"}).Add();
    RETURN_IF_ERROR(table_->Remove(id));
  }
  for (const SpoolRow& row : contents.rows) RecoverEntry(row);
  RETURN_IF_ERROR(RemoveUnknownBytes());
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
  entry.opened = clock_.Now();
  if (row.complete) {
    const absl::Time accepted = FromProto(row.header.spooled().accept_time());
    entry.sha256 = row.header.sha256();
    entry.expires = accepted + options_.ttl;
  } else {
    v1::OpenUploadRequest request;
    *request.mutable_description() = entry.description;
    entry.session = std::make_shared<UploadSession>(ToRecord(request, entry.id, 0), *blobs_, *this,
                                                    disk_, clock_);
  }
  // Two rows of one attempt remain if the removal of the first one failed.
  if (!index_.Insert(entry)) {
    Log(LogLevel::kWarning, "a second entry of the same result is removed", {{"upload", row.id}});
    if (const absl::Status status = table_->Remove(row.id); !status.ok()) {
      Log(LogLevel::kError, "cannot remove an entry of the spool",
          {{"upload", row.id}, {"error", status}});
    }
    return;
  }
  quota_.Restore(entry.id, entry.node(), entry.size);
  if (row.complete)
    queue_.Enqueue(entry.node(), entry.id, FromProto(row.header.spooled().accept_time()));
}

// A crash leaves bytes without a row when it comes before the row is written or after it is
// removed.
absl::Status Spool::RemoveUnknownBytes() {
  ASSIGN_OR_RETURN(const auto staged, blobs_->ListStaged());
  for (const std::string& id : staged) {
    const auto entry = index_.Find(id);
    if (entry && !entry->complete()) continue;
    RETURN_IF_ERROR(blobs_->DiscardStaged(id));
  }
  ASSIGN_OR_RETURN(const auto published, blobs_->ListPublished());
  for (const std::string& name : published) {
    if (index_.Find(name.substr(name.rfind('/') + 1))) continue;
    Log(LogLevel::kInfo, "bytes without an entry of the spool are removed", {{"blob", name}});
    RETURN_IF_ERROR(blobs_->Remove(name));
  }
  return absl::OkStatus();
}

absl::StatusOr<SpoolEntry> Spool::AddEntry(const v1::OpenUploadRequest& request) {
  SpoolEntry entry;
  entry.id = RandomHex(16);
  entry.description = request.description();
  entry.session = std::make_shared<UploadSession>(ToRecord(request, entry.id, 0), *blobs_, *this,
                                                  disk_, clock_);
  const absl::Status charged =
      quota_.Add(entry.id, entry.node(), request.has_size() ? request.size() : 0);
  if (!charged.ok()) {
    counters_->refused.Add();
    return charged;
  }
  // Another call may have added the attempt meanwhile.
  if (!index_.Insert(entry)) quota_.Release(entry.id);
  ASSIGN_OR_RETURN(auto existing, index_.Reopen(request, clock_.Now()));
  if (existing) return *std::move(existing);
  return errors::UploadNotFound(entry.id);
}

void Spool::OpenUpload(const v1::OpenUploadRequest& request, const UploadPeer& opener,
                       Opened opened) {
  auto entry = index_.Reopen(request, clock_.Now());
  if (entry.ok() && !*entry) entry = AddEntry(request);
  if (!entry.ok()) return opened(entry.status());
  if ((*entry)->complete()) return opened(OpenResponse(**entry, (*entry)->size, (*entry)->expires));
  Begin(**entry, request, opener, std::move(opened));
}

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
        if (const absl::Status s = table_->AddUpload(entry.id, header); !s.ok()) return (*done)(s);
        (*done)(OpenResponse(entry, *offset, clock_.Now() + options_.idle_after));
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
  const SignedResult signed_result = {result.key.run,   result.key.plugin, result.key.node,
                                      verified.attempt, result.size,       result.sha256};
  return VerifyResultSignature(result.delivery.signature, result.delivery.signer_pem, signed_result,
                               options_.fleet, root_, clock_.Now());
}

// Runs on the strand of the session. The bytes are verified and, if they are in a blob, durable.
void Spool::Commit(VerifiedResult verified, Done done) {
  const auto entry = index_.BeginCommit(verified.upload_id);
  if (!entry) return done(errors::UploadNotFound(verified.upload_id));
  const ResultRecord& result = verified.result;
  const absl::Time accepted = clock_.Now();
  v1::SubmitResultRequest header;
  *header.mutable_description() = entry->description;
  header.set_crc32c(result.crc32c);
  header.set_sha256(result.sha256);
  v1::SpooledProof& proof = *header.mutable_spooled();
  proof.mutable_signature()->set_value(result.delivery.signature);
  proof.mutable_signature()->set_certificate_chain_pem(result.delivery.signer_pem);
  proof.set_size(result.size);
  proof.set_sha256(result.sha256);
  ToProto(accepted, proof.mutable_accept_time());
  const absl::Status stored =
      table_->Complete(entry->id, header, result.blob.empty() ? result.body : std::string());
  if (!stored.ok()) {
    index_.CancelCommit(entry->id);
    return done(stored);
  }
  quota_.Set(entry->id, result.size);
  index_.EndCommit(entry->id, result.size, result.sha256, accepted + options_.ttl);
  queue_.Enqueue(entry->node(), entry->id, accepted);
  entry->session->Close();
  counters_->taken.Add();
  done(std::move(verified.result));
  if (on_complete_) on_complete_();
}

bool Spool::Holds(const v1::ResultDescription& description) const {
  return index_.HasResult(description);
}

void Spool::DiscardUpload(const v1::ResultDescription& description) {
  if (const auto entry = index_.RemoveUpload(description)) Discard(*entry);
}

// Ends the stream of an upload that left the index, and removes its bytes, also published ones: a
// commit may have failed after they were published.
void Spool::Discard(const SpoolEntry& entry) {
  quota_.Release(entry.id);
  const bool queued = entry.session->strand().Post([this, entry] {
    entry.session->Discard(errors::UploadNotFound(entry.id));
    absl::Status removed = table_->Remove(entry.id);
    if (removed.ok()) removed = blobs_->Remove(entry.blob());
    if (!removed.ok()) {
      Log(LogLevel::kWarning, "an upload stays in the spool until the next start",
          {{"upload", entry.id}, {"error", removed}});
    }
  });
  if (!queued) Log(LogLevel::kWarning, "an upload stays until the next start", {{"id", entry.id}});
}

void Spool::Sweep() {
  for (const auto& session : index_.sessions()) session->EndStalledStream(kStallLimit);
  for (const SpoolEntry& entry : index_.RemoveIdleUploads(clock_.Now() - options_.idle_after)) {
    Discard(entry);
  }
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
    Requeue(delivery, kReadRetry);
  }
  return std::nullopt;
}

absl::Status Spool::ReadDelivery(const SpoolEntry& entry, SpoolDelivery* delivery) {
  ASSIGN_OR_RETURN(delivery->header, table_->ReadHeader(entry.id));
  if (clock_.Now() >= entry.expires) {
    delivery->expired = true;
    delivery->why = absl::StrCat("relay ", options_.relay, " accepted this result at ",
                                 InWords(entry.expires - options_.ttl),
                                 " and could not deliver it until ", InWords(entry.expires));
    return absl::OkStatus();
  }
  const absl::Status status = CheckBytes(*delivery);
  if (!IsProvenLoss(status)) return status;
  delivery->expired = delivery->lost = true;
  delivery->why =
      absl::StrCat("relay ", options_.relay, " lost the bytes of this result: ", status.message());
  return absl::OkStatus();
}

absl::Status Spool::CheckBytes(const SpoolDelivery& delivery) {
  const int64_t size = delivery.header.spooled().size();
  absl::Status status = Read(delivery, size).status();
  // A second read tells lost bytes from a read that failed once.
  if (IsProvenLoss(status)) status = Read(delivery, size).status();
  return status;
}

absl::StatusOr<std::unique_ptr<ByteSource>> Spool::Read(const SpoolDelivery& delivery,
                                                        int64_t offset) {
  const auto entry = index_.Find(delivery.id);
  if (!entry) return absl::NotFoundError(absl::StrCat("the spool has no entry ", delivery.id));
  const int64_t size = delivery.header.spooled().size();
  if (size > kInlineLimit) return blobs_->Open(entry->blob(), offset);
  ASSIGN_OR_RETURN(const auto body, table_->ReadBody(entry->id));
  if (static_cast<int64_t>(body.size()) != size || offset > size ||
      Crc32c(body) != delivery.header.crc32c()) {
    return absl::DataLossError("its bytes do not match their checksum");
  }
  return std::make_unique<StringSource>(body.substr(static_cast<size_t>(offset)));
}

void Spool::Finish(const SpoolDelivery& delivery, std::string_view outcome) {
  const auto entry = index_.Find(delivery.id);
  if (!entry) return;
  absl::Status removed = table_->Remove(entry->id);
  if (removed.ok() && entry->size > kInlineLimit) removed = blobs_->Remove(entry->blob());
  if (!removed.ok()) {
    // The next start removes the bytes, or delivers the result again, without effect.
    Log(LogLevel::kError, "a result cannot be removed from the spool", {{"error", removed}});
  }
  counters_->outcomes.With({std::string(outcome)}).Add();
  index_.RemoveResult(entry->id);
  quota_.Release(entry->id);
  queue_.Finish(entry->node());
}

void Spool::Requeue(const SpoolDelivery& delivery, absl::Duration delay) {
  if (const auto entry = index_.Find(delivery.id)) queue_.Requeue(entry->node(), delay);
}

}  // namespace muster

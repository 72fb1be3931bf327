#include "services/relay/spool/spool.h"

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/random_id.h"
#include "services/common/blob/files/files_blob_store.h"
#include "services/common/errors.h"
#include "services/common/identity/result_signature.h"
#include "services/common/rpc/limits.h"
#include "services/relay/spool/spool_internal.h"

namespace muster {
namespace {

// What an entry costs beside its bytes: its file, its place in memory.
constexpr int64_t kOverhead = 8 * 1024;

// Space is taken in such steps by an upload that did not name its size.
constexpr int64_t kStep = int64_t{4} << 20;

constexpr absl::Duration kStallLimit = absl::Seconds(60);

void SetTime(absl::Time time, google::protobuf::Timestamp* to) {
  to->set_seconds(absl::ToUnixSeconds(time));
  to->set_nanos(0);
}

v1::OpenUploadResponse Answer(const std::string& id, int64_t epoch, int64_t offset,
                              absl::Time expires) {
  v1::OpenUploadResponse response;
  response.set_upload_id(id);
  response.set_epoch(epoch);
  response.set_offset(offset);
  response.set_chunk_max(kChunkMaxSmall);
  response.set_window(kUploadWindow);
  SetTime(expires, response.mutable_expire_time());
  response.set_zstd_accepted(true);
  return response;
}

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

}  // namespace

std::string AttemptName(const v1::ResultDescription& description) {
  return absl::StrCat(description.key().run(), "/", description.key().plugin(), "/",
                      description.key().node(), "/", description.attempt(),
                      description.is_error() ? "/e" : "");
}

Spool::Figures::Figures(Metrics& metrics)
    : entries(metrics.AddGauge("muster_relay_spool_entries",
                               "Uploads and results that rest in the spool.")),
      bytes(metrics.AddGauge("muster_relay_spool_bytes", "What they take of the spool's quota.")),
      max_bytes(metrics.AddGauge("muster_relay_spool_max_bytes", "The spool's quota.")),
      max_results(metrics.AddGauge("muster_relay_spool_max_results",
                                   "How many uploads and results it may hold.")),
      taken(metrics.AddCounter("muster_relay_spool_taken_total",
                               "Results that were taken whole while there was no way up.")),
      refused(metrics.AddCounter("muster_relay_spool_refused_total",
                                 "Uploads refused because the spool is full.")),
      outcomes(metrics.AddCounters(
          "muster_relay_spool_outcomes_total",
          "Results that left the spool: committed, refused above, expired, or lost to the disk.",
          {"outcome"}, 4)) {
  // There from the first on.
  for (const char* outcome : {"committed", "refused", "expired", "lost"}) outcomes.With({outcome});
}

Spool::Spool(const SpoolOptions& options, Certificate root, std::unique_ptr<BlobStore> blobs,
             Executor& disk, const Clock& clock, Metrics& metrics, FileOps& ops)
    : options_(options),
      root_(std::move(root)),
      blobs_(std::move(blobs)),
      disk_(disk),
      clock_(clock),
      ops_(ops),
      entries_folder_(options.folder + "/entries"),
      figures_(std::make_unique<Figures>(metrics)) {
  figures_->max_bytes.Set(static_cast<double>(options.quota_bytes));
  figures_->max_results.Set(static_cast<double>(options.max_entries));
  metrics.AddSampledGauge(
      "muster_relay_spool_oldest_seconds",
      "For how long the oldest result has waited in the spool; 0: there is none.",
      [this] { return absl::ToDoubleSeconds(OldestWait()); });
}

Spool::~Spool() = default;

absl::StatusOr<std::unique_ptr<Spool>> Spool::Open(const SpoolOptions& options, Executor& disk,
                                                   const Clock& clock, Metrics& metrics,
                                                   FileOps& ops) {
  auto root = Certificate::FromPem(options.fleet_ca_pem);
  if (!root.ok()) return root.status();
  if (auto made = MakeFolders(ops, options.folder + "/entries"); !made.ok()) return made;
  FilesBlobStoreOptions blobs;
  blobs.root = options.folder + "/blobs";
  auto store = OpenFilesBlobStore(std::move(blobs), ops);
  if (!store.ok()) return store.status();
  std::unique_ptr<Spool> spool(
      new Spool(options, *std::move(root), *std::move(store), disk, clock, metrics, ops));
  if (auto recovered = spool->Recover(); !recovered.ok()) return recovered;
  return spool;
}

std::string Spool::PathOf(EntryState state, uint64_t order, const std::string& id) const {
  return absl::StrCat(entries_folder_, "/", FormatEntryName({state, order, id}));
}

absl::Status Spool::Recover() {
  auto files = ops_.List(entries_folder_);
  if (!files.ok()) return files.status();
  // Complete ones come before the same still open, and in their order.
  std::ranges::sort(*files, {}, &FolderEntry::name);
  for (const FolderEntry& file : *files) {
    if (auto status = RecoverEntry(file.name); !status.ok()) return status;
  }
  if (auto status = DiscardUnknown(); !status.ok()) return status;
  Measure();
  if (!entries_.empty()) {
    Log(LogLevel::kInfo, "the spool holds results of an earlier life",
        {{"entries", static_cast<int64_t>(entries_.size())}, {"bytes", bytes_}});
  }
  return absl::OkStatus();
}

absl::Status Spool::RecoverEntry(const std::string& file) {
  const std::string path = absl::StrCat(entries_folder_, "/", file);
  const auto name = ParseEntryName(file);
  if (!name) return ops_.Remove(path);  // what a crash left of a file that was being written
  auto header = ReadEntryHeader(ops_, path);
  if (ReasonOf(header.status()) == "SPOOL_DAMAGED") {
    Log(LogLevel::kError, "a file of the spool is damaged and is removed",
        {{"file", file}, {"error", header.status()}});
    figures_->outcomes.With({"lost"}).Add();
    return ops_.Remove(path);
  }
  if (!header.ok()) return header.status();
  auto entry = std::make_shared<Entry>();
  entry->id = name->id;
  entry->description = header->description();
  entry->order = name->order;
  last_order_ = std::max(last_order_, name->order);
  if (name->state == EntryState::kDone || entries_.contains(name->id)) {
    if (name->state == EntryState::kDone) {
      if (auto status = blobs_->Remove(entry->blob()); !status.ok()) return status;
    }
    return ops_.Remove(path);
  }
  entry->recorded = true;
  entry->touched = clock_.Now();
  entry->size = header->spooled().size();
  by_attempt_[AttemptName(entry->description)] = entry->id;
  entries_[entry->id] = entry;
  ++queues_[entry->node()].entries;
  Charge(*entry, entry->size + kOverhead);
  if (name->state == EntryState::kOpen) {
    v1::OpenUploadRequest request;
    *request.mutable_description() = entry->description;
    entry->session = std::make_shared<UploadSession>(ToRecord(request, entry->id, 0), *blobs_,
                                                     *this, disk_, clock_);
    return absl::OkStatus();
  }
  entry->complete = true;
  entry->sha256 = header->sha256();
  entry->expires = absl::FromUnixSeconds(header->spooled().take_time().seconds()) + options_.ttl;
  queues_[entry->node()].ready.push_back(entry->id);
  return absl::OkStatus();
}

absl::Status Spool::DiscardUnknown() {
  const auto staged = blobs_->ListStaged();
  if (!staged.ok()) return staged.status();
  for (const std::string& id : *staged) {
    const auto entry = FindEntry(id);
    if (entry != nullptr && !entry->complete) continue;
    if (auto status = blobs_->DiscardStaged(id); !status.ok()) return status;
  }
  return absl::OkStatus();
}

std::shared_ptr<Spool::Entry> Spool::FindEntry(std::string_view id) const {
  const auto it = entries_.find(std::string(id));
  return it == entries_.end() ? nullptr : it->second;
}

void Spool::Charge(Entry& entry, int64_t bytes) {
  const int64_t more = bytes - entry.charged;
  entry.charged = bytes;
  bytes_ += more;
  queues_[entry.node()].bytes += more;
}

void Spool::Measure() const {
  figures_->entries.Set(static_cast<double>(entries_.size()));
  figures_->bytes.Set(static_cast<double>(bytes_));
}

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

// The entry of this key and attempt, made if there is none; under the lock.
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
  if (auto room = CheckRoom(description.key().node(), bytes, 1); !room.ok()) return room;
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

void Spool::OpenUpload(const v1::OpenUploadRequest& request, Opened opened) {
  std::shared_ptr<Entry> entry;
  std::optional<v1::OpenUploadResponse> complete;
  UploadRecord upload;
  absl::Status refused;
  {
    std::lock_guard lock(mutex_);
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
  Begin(entry, upload, std::move(opened));
}

// On the session's strand: its file first, then its bytes.
void Spool::Begin(const std::shared_ptr<Entry>& entry, const UploadRecord& upload, Opened opened) {
  auto done = std::make_shared<Opened>(std::move(opened));
  const std::shared_ptr<UploadSession> session = SessionOf(*entry);
  if (session == nullptr) return (*done)(errors::UploadNotFound(entry->id));
  const bool queued = session->strand().Post([this, entry, session, upload, done] {
    if (!entry->recorded) {
      v1::SubmitResultRequest header;
      *header.mutable_description() = entry->description;
      header.mutable_spooled()->set_size(std::max<int64_t>(upload.size, 0));
      const absl::Status written =
          WriteFileDurably(ops_, PathOf(EntryState::kOpen, 0, entry->id), EncodeEntry(header, ""));
      if (!written.ok()) return (*done)(written);
      entry->recorded = true;
    }
    const auto offset = session->Reopen(upload);
    if (!offset.ok()) return (*done)(offset.status());
    (*done)(Answer(entry->id, upload.epoch, *offset, clock_.Now() + options_.idle_after));
  });
  if (!queued) (*done)(errors::Overloaded());
}

std::shared_ptr<UploadSession> Spool::SessionOf(const Entry& entry) const {
  std::lock_guard lock(mutex_);
  return entry.session;
}

bool Spool::Has(std::string_view id) const {
  std::lock_guard lock(mutex_);
  return FindEntry(id) != nullptr;
}

std::optional<v1::Spooled> Spool::Told(std::string_view id) const {
  std::lock_guard lock(mutex_);
  const auto entry = FindEntry(id);
  if (entry == nullptr || !entry->complete) return std::nullopt;
  v1::Spooled spooled;
  spooled.set_relay(options_.relay);
  SetTime(entry->expires, spooled.mutable_expire_time());
  return spooled;
}

bool Spool::IsComplete(std::string_view id, std::string_view node) const {
  std::lock_guard lock(mutex_);
  const auto entry = FindEntry(id);
  return entry != nullptr && entry->complete && entry->node() == node;
}

absl::StatusOr<std::shared_ptr<UploadSession>> Spool::Find(std::string_view id,
                                                           std::string_view node) const {
  std::lock_guard lock(mutex_);
  const auto entry = FindEntry(id);
  // Whose it is, is told to nobody else.
  if (entry == nullptr || entry->node() != node || entry->session == nullptr) {
    return errors::UploadNotFound(id);
  }
  return entry->session;
}

absl::Status Spool::Reserve(std::string_view id, int64_t end) {
  std::lock_guard lock(mutex_);
  const auto entry = FindEntry(id);
  if (entry == nullptr) return errors::UploadNotFound(id);
  const int64_t wanted = end + kOverhead;
  if (wanted <= entry->charged) return absl::OkStatus();
  const int64_t bytes = std::max(wanted, entry->charged + kStep);
  if (auto room = CheckRoom(entry->node(), bytes - entry->charged, 0); !room.ok()) return room;
  Charge(*entry, bytes);
  Measure();
  return absl::OkStatus();
}

bool Spool::Holds(const v1::ResultDescription& description) const {
  std::lock_guard lock(mutex_);
  const auto it = by_attempt_.find(AttemptName(description));
  return it != by_attempt_.end() && entries_.at(it->second)->complete;
}

void Spool::DropOpen(const v1::ResultDescription& description) {
  std::shared_ptr<Entry> entry;
  {
    std::lock_guard lock(mutex_);
    const auto it = by_attempt_.find(AttemptName(description));
    if (it != by_attempt_.end()) entry = entries_.at(it->second);
    if (entry == nullptr || entry->complete || entry->committing) return;
    Erase(*entry);
  }
  Discard(*entry, errors::UploadNotFound(entry->id));
}

// Under the lock.
void Spool::Erase(Entry& entry) {
  Charge(entry, 0);
  by_attempt_.erase(AttemptName(entry.description));
  if (const auto queue = queues_.find(entry.node()); --queue->second.entries == 0) {
    queues_.erase(queue);
  }
  entries_.erase(entry.id);
  Measure();
}

// Of an upload that is in no map any more: its stream ends, its files go.
void Spool::Discard(const Entry& entry, const absl::Status& why) {
  const std::shared_ptr<UploadSession> session = entry.session;
  const bool queued =
      session->strand().Post([this, session, why, path = PathOf(EntryState::kOpen, 0, entry.id)] {
        session->Discard(why);
        const absl::Status removed = ops_.Remove(path);
        if (!removed.ok() && !absl::IsNotFound(removed)) {
          Log(LogLevel::kWarning, "a file of the spool stays", {{"error", removed}});
        }
      });
  if (!queued) {
    Log(LogLevel::kWarning, "an upload's files stay in the spool until the next start",
        {{"upload", session->id()}});
  }
}

void Spool::Sweep() {
  std::vector<std::shared_ptr<Entry>> idle;
  std::vector<std::shared_ptr<UploadSession>> stalled;
  {
    std::lock_guard lock(mutex_);
    const absl::Time now = clock_.Now();
    for (const auto& [id, entry] : entries_) {
      if (entry->session == nullptr) continue;
      if (entry->session->StalledFor() > kStallLimit) stalled.push_back(entry->session);
      if (!entry->committing && !entry->session->attached() &&
          now - entry->touched > options_.idle_after) {
        idle.push_back(entry);
      }
    }
    for (const auto& entry : idle) Erase(*entry);
  }
  for (const auto& session : stalled) session->EndStream(errors::UploadStalled());
  for (const auto& entry : idle) Discard(*entry, errors::UploadNotFound(entry->id));
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
    std::lock_guard lock(mutex_);
    entry = FindEntry(verified.upload_id);
    if (entry != nullptr) {
      entry->committing = true;
      order = ++last_order_;
    }
  }
  if (entry == nullptr) return done(errors::UploadNotFound(verified.upload_id));
  absl::Status status = CheckSignature(verified);
  if (status.ok()) status = Keep(*entry, order, verified);
  if (!status.ok()) {
    {
      std::lock_guard lock(mutex_);
      entry->committing = false;
    }
    return done(status);
  }
  std::shared_ptr<UploadSession> session;
  {
    std::lock_guard lock(mutex_);
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
  SetTime(clock_.Now(), proof.mutable_take_time());
  const absl::Status written =
      WriteFileDurably(ops_, PathOf(EntryState::kComplete, order, entry.id),
                       EncodeEntry(header, result.blob.empty() ? result.body : std::string()));
  if (!written.ok()) return written;
  const absl::Status removed = ops_.Remove(PathOf(EntryState::kOpen, 0, entry.id));
  if (!removed.ok()) Log(LogLevel::kWarning, "a file of the spool stays", {{"error", removed}});
  return absl::OkStatus();
}

// Under the lock; gives what took the bytes, which is not needed any more.
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

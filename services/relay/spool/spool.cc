#include "services/relay/spool/spool.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/blob/files/files_blob_store.h"
#include "services/common/errors/results.h"
#include "services/common/rpc/proto_time.h"
#include "services/relay/spool/spool_internal.h"

namespace muster {
namespace {

constexpr absl::Duration kStallLimit = absl::Seconds(60);

}  // namespace

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
  ASSIGN_OR_RETURN(auto root, Certificate::FromPem(options.fleet_ca_pem));
  RETURN_IF_ERROR(MakeFolders(ops, options.folder + "/entries"));
  FilesBlobStoreOptions blobs;
  blobs.root = options.folder + "/blobs";
  ASSIGN_OR_RETURN(auto store, OpenFilesBlobStore(std::move(blobs), ops));
  std::unique_ptr<Spool> spool(
      new Spool(options, std::move(root), std::move(store), disk, clock, metrics, ops));
  RETURN_IF_ERROR(spool->Recover());
  return spool;
}

std::string Spool::PathOf(EntryState state, uint64_t order, const std::string& id) const {
  return absl::StrCat(entries_folder_, "/", FormatEntryName({state, order, id}));
}

absl::Status Spool::Recover() {
  ASSIGN_OR_RETURN(auto files, ops_.List(entries_folder_));
  MutexLock lock(mutex_);
  // Complete ones come before the same still open, and in their order.
  std::ranges::sort(files, {}, &FolderEntry::name);
  std::set<std::string> unread;
  for (const FolderEntry& file : files) {
    RETURN_IF_ERROR(RecoverEntry(file.name, &unread));
  }
  RETURN_IF_ERROR(DiscardUnknown(unread));
  Measure();
  if (!entries_.empty()) {
    Log(LogLevel::kInfo, "the spool holds results of an earlier life",
        {{"entries", static_cast<int64_t>(entries_.size())}, {"bytes", bytes_}});
  }
  return absl::OkStatus();
}

absl::Status Spool::RecoverEntry(const std::string& file, std::set<std::string>* unread) {
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
  last_order_ = std::max(last_order_, name->order);
  if (!header.ok()) {
    Log(LogLevel::kError, "a file of the spool cannot be read and stays for the next start",
        {{"file", file}, {"error", header.status()}});
    unread->insert(name->id);
    return absl::OkStatus();
  }
  auto entry = std::make_shared<Entry>();
  entry->id = name->id;
  entry->description = header->description();
  entry->order = name->order;
  if (name->state == EntryState::kDone || entries_.contains(name->id)) {
    if (name->state == EntryState::kDone) {
      RETURN_IF_ERROR(blobs_->Remove(entry->blob()));
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
  entry->expires = FromProto(header->spooled().accept_time()) + options_.ttl;
  queues_[entry->node()].ready.push_back(entry->id);
  return absl::OkStatus();
}

absl::Status Spool::DiscardUnknown(const std::set<std::string>& unread) {
  ASSIGN_OR_RETURN(const auto staged, blobs_->ListStaged());
  for (const std::string& id : staged) {
    const auto entry = FindEntry(id);
    if (unread.contains(id) || (entry != nullptr && !entry->complete)) continue;
    RETURN_IF_ERROR(blobs_->DiscardStaged(id));
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

std::shared_ptr<UploadSession> Spool::SessionOf(const Entry& entry) const {
  MutexLock lock(mutex_);
  return entry.session;
}

bool Spool::Has(std::string_view id) const {
  MutexLock lock(mutex_);
  return FindEntry(id) != nullptr;
}

std::optional<v1::Spooled> Spool::Receipt(std::string_view id) const {
  MutexLock lock(mutex_);
  const auto entry = FindEntry(id);
  if (entry == nullptr || !entry->complete) return std::nullopt;
  v1::Spooled spooled;
  spooled.set_relay(options_.relay);
  ToProto(entry->expires, spooled.mutable_expire_time());
  return spooled;
}

bool Spool::IsComplete(std::string_view id, std::string_view node) const {
  MutexLock lock(mutex_);
  const auto entry = FindEntry(id);
  return entry != nullptr && entry->complete && entry->node() == node;
}

absl::StatusOr<std::shared_ptr<UploadSession>> Spool::Find(std::string_view id,
                                                           std::string_view node) const {
  MutexLock lock(mutex_);
  const auto entry = FindEntry(id);
  // Whose it is, is told to nobody else.
  if (entry == nullptr || entry->node() != node || entry->session == nullptr) {
    return errors::UploadNotFound(id);
  }
  return entry->session;
}

bool Spool::Holds(const v1::ResultDescription& description) const {
  MutexLock lock(mutex_);
  const auto it = by_attempt_.find(AttemptName(description));
  return it != by_attempt_.end() && entries_.at(it->second)->complete;
}

void Spool::DiscardUpload(const v1::ResultDescription& description) {
  std::shared_ptr<Entry> entry;
  {
    MutexLock lock(mutex_);
    const auto it = by_attempt_.find(AttemptName(description));
    if (it != by_attempt_.end()) entry = entries_.at(it->second);
    if (entry == nullptr || entry->complete || entry->committing) return;
    Erase(*entry);
  }
  Discard(*entry, errors::UploadNotFound(entry->id));
}

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
    MutexLock lock(mutex_);
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
  for (const auto& session : stalled) session->EndStalledStream(kStallLimit);
  for (const auto& entry : idle) Discard(*entry, errors::UploadNotFound(entry->id));
}

}  // namespace muster

// The way out of the spool.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/string_source.h"
#include "services/relay/spool/spool.h"
#include "services/relay/spool/spool_internal.h"

namespace muster {
namespace {

// After so long a result that could not be read is read again.
constexpr absl::Duration kReadRetry = absl::Seconds(10);

std::string InWords(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone());
}

}  // namespace

int64_t Spool::waiting() const {
  MutexLock lock(mutex_);
  int64_t waiting = 0;
  for (const auto& [node, queue] : queues_) waiting += static_cast<int64_t>(queue.ready.size());
  return waiting;
}

// Each node's results are in the order in which they were complete.
absl::Duration Spool::OldestWait() const {
  MutexLock lock(mutex_);
  absl::Time oldest = absl::InfiniteFuture();
  for (const auto& [node, queue] : queues_) {
    if (queue.ready.empty()) continue;
    oldest = std::min(oldest, entries_.at(queue.ready.front())->expires - options_.ttl);
  }
  return oldest == absl::InfiniteFuture() ? absl::ZeroDuration() : clock_.Now() - oldest;
}

// Nodes take turns, so that one with many results does not keep others waiting.
std::shared_ptr<Spool::Entry> Spool::NextDelivery() {
  MutexLock lock(mutex_);
  const absl::Duration now = clock_.MonotonicNow();
  auto it = queues_.upper_bound(last_node_);
  for (size_t i = 0; i < queues_.size(); ++i, ++it) {
    if (it == queues_.end()) it = queues_.begin();
    Queue& queue = it->second;
    if (queue.out || queue.ready.empty() || now < queue.not_before) continue;
    queue.out = true;
    last_node_ = it->first;
    return entries_.at(queue.ready.front());
  }
  return nullptr;
}

std::optional<SpoolDelivery> Spool::Dequeue() {
  while (const std::shared_ptr<Entry> entry = NextDelivery()) {
    SpoolDelivery delivery;
    delivery.id = entry->id;
    auto header = ReadEntryHeader(ops_, PathOf(EntryState::kComplete, entry->order, entry->id));
    if (!header.ok() && !IsProvenLoss(header.status())) {
      RetryLater(delivery, header.status());
      continue;
    }
    if (!header.ok()) {
      Log(LogLevel::kError, "a result of the spool is lost",
          {{"run", entry->description.key().run()},
           {"plugin", entry->description.key().plugin()},
           {"node", entry->node()},
           {"error", header.status()}});
      *delivery.header.mutable_description() = entry->description;
      Finish(delivery, "lost");
      continue;
    }
    delivery.header = *std::move(header);
    if (clock_.Now() >= entry->expires) {
      delivery.expired = true;
      delivery.why = absl::StrCat("relay ", options_.relay, " took this result at ",
                                  InWords(entry->expires - options_.ttl),
                                  " and had no way to deliver it until ", InWords(entry->expires));
    } else if (const absl::Status status = CheckBytes(delivery); !status.ok()) {
      if (!IsProvenLoss(status)) {
        RetryLater(delivery, status);
        continue;
      }
      delivery.expired = delivery.lost = true;
      delivery.why = absl::StrCat("relay ", options_.relay,
                                  " lost the bytes of this result: ", status.message());
    }
    return delivery;
  }
  return std::nullopt;
}

void Spool::RetryLater(const SpoolDelivery& delivery, const absl::Status& why) {
  Log(LogLevel::kWarning, "a result of the spool cannot be read now",
      {{"id", delivery.id}, {"error", why}});
  Requeue(delivery, kReadRetry);
}

absl::Status Spool::CheckBytes(const SpoolDelivery& delivery) {
  absl::Status status = Read(delivery, delivery.header.spooled().size()).status();
  // A second read tells what is lost from a read that went wrong.
  if (IsProvenLoss(status)) status = Read(delivery, delivery.header.spooled().size()).status();
  return status;
}

absl::StatusOr<std::unique_ptr<ByteSource>> Spool::Read(const SpoolDelivery& delivery,
                                                        int64_t offset) {
  std::shared_ptr<Entry> entry;
  {
    MutexLock lock(mutex_);
    entry = FindEntry(delivery.id);
  }
  if (entry == nullptr) return absl::NotFoundError("it is not in the spool");
  const int64_t size = delivery.header.spooled().size();
  if (size > kInlineLimit) return blobs_->Open(entry->blob(), offset);
  ASSIGN_OR_RETURN(auto body,
                   ReadEntryBody(ops_, PathOf(EntryState::kComplete, entry->order, entry->id)));
  if (static_cast<int64_t>(body.size()) != size || offset > size) {
    return absl::DataLossError("its file is shorter than it was");
  }
  return std::make_unique<StringSource>(body.substr(static_cast<size_t>(offset)));
}

void Spool::Finish(const SpoolDelivery& delivery, std::string_view outcome) {
  std::shared_ptr<Entry> entry;
  {
    MutexLock lock(mutex_);
    entry = FindEntry(delivery.id);
  }
  if (entry == nullptr) return;
  if (const absl::Status status = RemoveFiles(*entry); !status.ok() && !absl::IsNotFound(status)) {
    // It comes again after the next start: delivering it twice is delivering it once.
    Log(LogLevel::kError, "a file of the spool cannot be removed", {{"error", status}});
  }
  figures_->outcomes.With({std::string(outcome)}).Add();
  MutexLock lock(mutex_);
  Queue& queue = queues_.at(entry->node());
  queue.out = false;
  queue.ready.pop_front();
  Erase(*entry);
}

// The name goes first: a file that is half removed must not be taken for one to be delivered.
absl::Status Spool::RemoveFiles(const Entry& entry) {
  const std::string done = PathOf(EntryState::kDone, entry.order, entry.id);
  RETURN_IF_ERROR(ops_.Rename(PathOf(EntryState::kComplete, entry.order, entry.id), done));
  RETURN_IF_ERROR(ops_.SyncFolder(entries_folder_));
  RETURN_IF_ERROR(blobs_->Remove(entry.blob()));
  return ops_.Remove(done);
}

void Spool::Requeue(const SpoolDelivery& delivery, absl::Duration delay) {
  MutexLock lock(mutex_);
  const auto entry = FindEntry(delivery.id);
  if (entry == nullptr) return;
  Queue& queue = queues_.at(entry->node());
  queue.out = false;
  queue.not_before = clock_.MonotonicNow() + delay;
}

}  // namespace muster

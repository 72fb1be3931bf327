#include "services/aggregator/runs/archive_cursor.h"

#include <utility>

#include "services/aggregator/file_stream.h"
#include "services/common/base/sha256.h"

namespace muster {
namespace {

constexpr int kPageSize = 1000;

ArchivedOutcome ToArchived(Outcome outcome) {
  switch (outcome) {
    case Outcome::kGenuine:
      return ArchivedOutcome::kGenuine;
    case Outcome::kTimedOut:
      return ArchivedOutcome::kTimedOut;
    case Outcome::kError:
    case Outcome::kPending:
      break;
  }
  return ArchivedOutcome::kError;
}

ArchivedResult ToArchived(const ResultRecord& row) {
  ArchivedResult result;
  result.plugin = row.key.plugin;
  result.node = row.key.node;
  result.outcome = ToArchived(row.outcome);
  result.error = row.error;
  result.generation = row.generation;
  result.committed_at = absl::FromUnixMicros(row.committed_at);
  result.has_file = row.outcome != Outcome::kTimedOut;
  result.media_type = row.media_type;
  result.file_name = row.file_name;
  result.size = row.size;
  result.sha256 = ToHex(row.sha256);
  result.has_partial = row.partial_size > 0;
  result.partial_size = row.partial_size;
  result.delivered_by = row.delivery.uri;
  result.node_unproven = row.delivery.node_unproven;
  result.vouched_by = row.delivery.vouched_by;
  return result;
}

}  // namespace

ArchiveCursor::ArchiveCursor(StateStore& store, BlobStore& blobs, std::string run)
    : store_(store), blobs_(blobs) {
  filter_.run = std::move(run);
}

absl::Status ArchiveCursor::NextPage() {
  auto page = store_.ListResults(filter_, page_.next, kPageSize);
  if (!page.ok()) return page.status();
  page_ = *std::move(page);
  position_ = 0;
  begun_ = true;
  return absl::OkStatus();
}

absl::StatusOr<bool> ArchiveCursor::Next(ArchivedResult& result) {
  while (position_ == page_.items.size()) {
    if (begun_ && page_.next.empty()) return false;
    if (const absl::Status status = NextPage(); !status.ok()) return status;
  }
  const ResultRecord& row = page_.items[position_++];
  result = ToArchived(row);
  if (row.generation <= 1) return true;
  const auto history = store_.History(row.key);
  if (!history.ok()) return history.status();
  for (const ResultRecord& earlier : *history) {
    result.history.push_back({earlier.generation, ToArchived(earlier.outcome), earlier.error,
                              absl::FromUnixMicros(earlier.committed_at)});
  }
  return true;
}

absl::StatusOr<std::unique_ptr<ByteSource>> ArchiveCursor::Open() {
  const ResultRecord& row = page_.items[position_ - 1];
  if (!row.blob.empty()) return blobs_.Open(row.blob, 0);
  auto whole = FindResult(store_, row.key);
  if (!whole.ok()) return whole.status();
  return OpenResult(blobs_, *std::move(whole), 0);
}

absl::StatusOr<std::unique_ptr<ByteSource>> ArchiveCursor::OpenPartial() {
  return blobs_.Open(page_.items[position_ - 1].partial_blob, 0);
}

}  // namespace muster

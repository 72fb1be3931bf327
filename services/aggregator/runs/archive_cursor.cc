#include "services/aggregator/runs/archive_cursor.h"

#include <span>
#include <utility>

#include "services/aggregator/file_stream.h"
#include "services/common/base/io.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"

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

class StoppableSource final : public ByteSource {
 public:
  StoppableSource(std::unique_ptr<ByteSource> source, const std::atomic<bool>& stopped)
      : source_(std::move(source)), stopped_(stopped) {}

  absl::StatusOr<size_t> Read(std::span<char> buffer) override {
    if (stopped_) return BuildCancelled();
    return source_->Read(buffer);
  }

 private:
  const std::unique_ptr<ByteSource> source_;
  const std::atomic<bool>& stopped_;
};

}  // namespace

ArchiveCursor::ArchiveCursor(StateStore& store, BlobStore& blobs, std::string run,
                             ReadFailures& failures, const std::atomic<bool>& stopped)
    : store_(store), blobs_(blobs), failures_(failures), stopped_(stopped) {
  filter_.run = std::move(run);
}

absl::Status ArchiveCursor::NextPage() {
  ASSIGN_OR_RETURN(page_, store_.ListResults(filter_, page_.next, kPageSize));
  position_ = 0;
  begun_ = true;
  return absl::OkStatus();
}

absl::StatusOr<bool> ArchiveCursor::Next(ArchivedResult& result) {
  if (stopped_) return BuildCancelled();
  while (position_ == page_.items.size()) {
    if (begun_ && page_.next.empty()) return false;
    RETURN_IF_ERROR(NextPage());
  }
  const ResultRecord& row = page_.items[position_++];
  result = ToArchived(row);
  if (row.generation <= 1) return true;
  ASSIGN_OR_RETURN(const auto history, store_.History(row.key));
  for (const ResultRecord& earlier : history) {
    result.history.push_back({earlier.generation, ToArchived(earlier.outcome), earlier.error,
                              absl::FromUnixMicros(earlier.committed_at)});
  }
  return true;
}

absl::StatusOr<std::unique_ptr<ByteSource>> ArchiveCursor::Open() {
  const ResultRecord& row = page_.items[position_ - 1];
  if (!row.blob.empty()) return OpenBlob(row.blob);
  ASSIGN_OR_RETURN(auto whole, FindResult(store_, row.key));
  return OpenResult(blobs_, std::move(whole), 0);
}

absl::StatusOr<std::unique_ptr<ByteSource>> ArchiveCursor::OpenPartial() {
  return OpenBlob(page_.items[position_ - 1].partial_blob);
}

absl::StatusOr<std::unique_ptr<ByteSource>> ArchiveCursor::OpenBlob(const std::string& blob) {
  auto source = blobs_.Open(blob, 0);
  if (!source.ok()) return failures_.Judge(blob, source.status());
  return std::make_unique<StoppableSource>(failures_.Watch(blob, *std::move(source)), stopped_);
}

}  // namespace muster

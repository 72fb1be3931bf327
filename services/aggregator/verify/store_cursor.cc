#include "services/aggregator/verify/store_cursor.h"

#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/string_source.h"
#include "services/common/base/strings.h"
#include "services/common/errors/runs.h"

namespace muster {
namespace {

constexpr int kPageSize = 100;
constexpr int64_t kMaxObjects = 200;  // of a step
constexpr size_t kReadSize = 256 * 1024;

}  // namespace

StoreCursor::StoreCursor(StateStore& store, BlobStore& blobs, const Clock& clock, Actor actor,
                         std::string run, VerifyOptions options)
    : store_(store),
      blobs_(blobs),
      recorder_(store, clock, std::move(actor)),
      only_run_(std::move(run)),
      options_(options) {}

void StoreCursor::SeekTo(std::string_view position) {
  const std::vector<std::string> parts = absl::StrSplit(ToAbsl(position), '\n');
  if (parts.size() != 3) return;
  next_run_token_ = parts[0];
  sought_run_ = parts[1];
  page_token_ = parts[2];
}

std::string StoreCursor::position() const {
  if (!run_) return absl::StrCat(next_run_token_, "\n\n");
  return absl::StrCat(run_token_, "\n", run_->id, "\n", page_token_);
}

absl::StatusOr<VerifyStep> StoreCursor::Step(int64_t bytes) {
  VerifyStep step;
  while (!step.end && step.bytes < bytes && step.objects < kMaxObjects) {
    const absl::Status advanced = Advance(step);
    if (advanced.ok()) continue;
    // The damage that was found is returned first: the next step fails with the same error.
    if (step.damaged.empty()) return advanced;
    break;
  }
  return step;
}

absl::Status StoreCursor::Advance(VerifyStep& step) {
  if (!object_) {
    ASSIGN_OR_RETURN(const bool found, FindNext());
    step.end = !found;
  }
  return step.end ? absl::OkStatus() : Read(step);
}

// Sets object_ to the next result, or the archive, of the present run or the next one.
absl::StatusOr<bool> StoreCursor::FindNext() {
  while (true) {
    if (!run_) {
      ASSIGN_OR_RETURN(const bool found, NextRun());
      if (!found) return false;
    }
    if (index_ == page_.items.size() && !results_done_) RETURN_IF_ERROR(NextPage());
    if (index_ < page_.items.size()) {
      const ResultRecord& row = page_.items[index_++];
      object_ = Object{{row.key, row.generation, row.blob},
                       row.size,
                       row.crc32c,
                       row.sha256,
                       row.partial_blob,
                       row.partial_size,
                       row.damage};
      return true;
    }
    if (!results_done_) continue;
    const bool archived = run_->state == RunState::kComplete && !run_->archive.blob.empty();
    if (!archived || std::exchange(archive_found_, true)) {
      run_.reset();
      continue;
    }
    const ArchiveRecord& archive = run_->archive;
    object_ = Object{};
    object_->key.run = run_->id;
    object_->size = archive.size;
    object_->sha256 = archive.sha256;
    object_->blob = archive.blob;
    object_->damage = archive.damage;
    return true;
  }
}

absl::StatusOr<bool> StoreCursor::NextRun() {
  if (last_run_) return false;
  if (!only_run_.empty()) {
    ASSIGN_OR_RETURN(auto view, store_.GetRun(only_run_));
    if (!view) return errors::RunNotFound(only_run_);
    run_ = std::move(view->run);
    last_run_ = true;
  } else {
    run_token_ = next_run_token_;
    ASSIGN_OR_RETURN(auto page, store_.ListRuns(run_token_, 1));
    if (page.items.empty()) return false;
    run_ = std::move(page.items.front());
    next_run_token_ = page.next;
    last_run_ = page.next.empty();
  }
  if (run_->id != std::exchange(sought_run_, "")) page_token_.clear();
  page_ = {};
  page_.next = page_token_;
  index_ = 0;
  results_done_ = false;
  archive_found_ = false;
  return true;
}

absl::Status StoreCursor::NextPage() {
  page_token_ = page_.next;
  ASSIGN_OR_RETURN(page_, store_.ListResults({.run = run_->id}, page_token_, kPageSize));
  index_ = 0;
  results_done_ = page_.next.empty();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ByteSource>> StoreCursor::OpenObject() {
  read_ = 0;
  crc32c_ = 0;
  sha256_ = Sha256();
  if (!object_->blob.empty()) return blobs_.Open(object_->blob, 0);
  std::string body;
  if (object_->size > 0) {
    ASSIGN_OR_RETURN(auto result, store_.GetResult(object_->key));
    if (result) body = std::move(result->body);
  }
  return std::make_unique<StringSource>(std::move(body), 0);
}

// Returns the error of an open or a read of the present object; DATA_LOSS once it counts as lost.
absl::Status StoreCursor::Judge(const absl::Status& failure) const {
  if (options_.read_failures == nullptr || object_->blob.empty()) return failure;
  return options_.read_failures->Judge(object_->blob, failure);
}

// Reads a part of the present object, and finishes it at its end.
absl::Status StoreCursor::Read(VerifyStep& step) {
  if (source_ == nullptr) {
    auto source = OpenObject();
    if (absl::IsNotFound(source.status())) return Finish(std::string(kMissingFile), true, step);
    if (!source.ok()) {
      const absl::Status failure = Judge(source.status());
      return Finish(CannotBeOpened(failure), IsLoss(failure), step);
    }
    source_ = *std::move(source);
  }
  buffer_.resize(kReadSize);
  const auto count = source_->Read(std::span(buffer_));
  if (!count.ok()) {
    const absl::Status failure = Judge(count.status());
    return Finish(CannotBeRead(failure), IsLoss(failure), step);
  }
  if (*count == 0) {
    if (options_.read_failures != nullptr) options_.read_failures->Forget(object_->blob);
    std::string damage = Compare();
    if (damage.empty()) damage = ComparePartial();
    return Finish(std::move(damage), true, step);
  }
  const std::string_view data = std::string_view(buffer_).substr(0, *count);
  if (object_->crc32c) crc32c_ = ExtendCrc32c(crc32c_, data);
  sha256_.Update(data);
  read_ += static_cast<int64_t>(*count);
  step.bytes += static_cast<int64_t>(*count);
  return absl::OkStatus();
}

std::string StoreCursor::Compare() {
  if (read_ != object_->size) return WrongSize(read_, object_->size);
  if (object_->crc32c && crc32c_ != *object_->crc32c) return std::string(kWrongCrc32c);
  const bool has_sha256 = object_->sha256.size() == kSha256Size;
  const bool same = !has_sha256 || DigestBytes(sha256_.Finish()) == object_->sha256;
  return same ? "" : std::string(kWrongSha256);
}

std::string StoreCursor::ComparePartial() {
  if (object_->partial_blob.empty()) return "";
  const auto size = blobs_.Size(object_->partial_blob);
  if (absl::IsNotFound(size.status())) return "the stored partial data is missing";
  if (!size.ok() || *size == object_->partial_size) return "";
  return absl::StrCat("stored are ", *size, " bytes of partial data instead of ",
                      object_->partial_size);
}

absl::Status StoreCursor::Finish(std::string damage, bool proven, VerifyStep& step) {
  const Object& object = *object_;
  source_.reset();
  bool current = true;
  std::string redelivery;
  if (proven && !(damage.empty() && object.damage.empty())) {
    const auto recorded = recorder_.Record(object, damage, options_.keep_declined);
    // The next step reads the object again.
    if (!recorded.ok()) return recorded.status();
    // False if the result was replaced, repaired or deleted while it was read.
    current = recorded->current;
    redelivery = recorded->redelivery;
  }
  if (current && !damage.empty()) {
    step.damaged.push_back(
        {object.key, object.generation, std::move(damage), std::move(redelivery)});
  }
  object_.reset();
  ++step.objects;
  return absl::OkStatus();
}

}  // namespace muster

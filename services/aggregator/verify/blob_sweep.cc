#include "services/aggregator/verify/blob_sweep.h"

#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/upload/blob_names.h"

namespace muster {
namespace {

constexpr int kPageSize = 1000;

class RunSweep {
 public:
  RunSweep(StateStore& store, BlobStore& blobs, std::string run)
      : store_(store), blobs_(blobs), run_(std::move(run)) {}

  // `names`: the run's blobs, listed before this call.
  absl::StatusOr<int64_t> Remove(std::span<const std::string> names) {
    ASSIGN_OR_RETURN(const auto view, store_.GetRun(run_));
    if (!view) {
      RETURN_IF_ERROR(blobs_.RemoveAll(RunBlobPrefix(run_)));
      return static_cast<int64_t>(names.size());
    }
    // In this order: a listed blob of an upload that is not open any more was committed before the
    // results are read, or never will be.
    ASSIGN_OR_RETURN(const auto open, store_.OpenUploads(run_));
    for (const UploadRecord& upload : open) named_.insert(ResultBlobName(run_, upload.id));
    RETURN_IF_ERROR(FindResults());
    named_.insert(view->run.archive.blob);
    int64_t removed = 0;
    for (const std::string& name : names) {
      // While a run is sealed, its archive and partial data are published before their records.
      const bool result = absl::StartsWith(name, RunBlobPrefix(run_) + "results/");
      if (named_.contains(name) || (!result && !IsFinal(view->run.state))) continue;
      RETURN_IF_ERROR(blobs_.Remove(name));
      ++removed;
    }
    return removed;
  }

 private:
  void Add(const ResultRecord& result) {
    named_.insert(result.blob);
    named_.insert(result.partial_blob);
  }

  absl::Status FindResults() {
    Page<ResultRecord> page;
    do {
      ASSIGN_OR_RETURN(page, store_.ListResults({.run = run_}, page.next, kPageSize));
      for (const ResultRecord& result : page.items) {
        Add(result);
        if (result.generation <= 1) continue;
        ASSIGN_OR_RETURN(const auto history, store_.History(result.key));
        for (const ResultRecord& earlier : history) Add(earlier);
      }
    } while (!page.next.empty());
    return absl::OkStatus();
  }

  StateStore& store_;
  BlobStore& blobs_;
  const std::string run_;
  std::unordered_set<std::string> named_;
};

}  // namespace

absl::StatusOr<BlobSweep::Step> BlobSweep::Advance() {
  if (!runs_) {
    ASSIGN_OR_RETURN(runs_, blobs_.ListFolders(kRunBlobs));
  }
  Step step;
  if (!runs_->empty()) {
    const std::string run = std::move(runs_->back());
    runs_->pop_back();
    ASSIGN_OR_RETURN(const auto names, blobs_.ListBelow(RunBlobPrefix(run)));
    step.listed = static_cast<int64_t>(names.size());
    ASSIGN_OR_RETURN(step.removed, RunSweep(store_, blobs_, run).Remove(names));
    if (step.removed > 0) {
      Log(LogLevel::kWarning, "removed stored files that belong to no record",
          {{"run", run}, {"files", step.removed}});
    }
  }
  step.end = runs_->empty();
  return step;
}

absl::StatusOr<int64_t> SweepBlobs(StateStore& store, BlobStore& blobs) {
  BlobSweep sweep(store, blobs);
  BlobSweep::Step step;
  int64_t removed = 0;
  while (!step.end) {
    ASSIGN_OR_RETURN(step, sweep.Advance());
    removed += step.removed;
  }
  return removed;
}

}  // namespace muster

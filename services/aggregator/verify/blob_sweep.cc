#include "services/aggregator/verify/blob_sweep.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "absl/strings/match.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/upload/blob_names.h"

namespace muster {
namespace {

constexpr int kPageSize = 1000;
constexpr std::string_view kRuns = "runs/";

// Returns the id of the run in the name of a blob; empty if there is none.
std::string RunOf(std::string_view name) {
  if (!name.starts_with(kRuns)) return "";
  const size_t end = name.find('/', kRuns.size());
  if (end == std::string_view::npos) return "";
  return std::string(name.substr(kRuns.size(), end - kRuns.size()));
}

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

absl::StatusOr<int64_t> SweepBlobs(StateStore& store, BlobStore& blobs) {
  ASSIGN_OR_RETURN(auto names, blobs.ListPublished());
  std::sort(names.begin(), names.end());
  int64_t removed = 0;
  for (size_t begin = 0; begin < names.size();) {
    const std::string run = RunOf(names[begin]);
    size_t end = begin + 1;
    while (end < names.size() && RunOf(names[end]) == run) ++end;
    if (!run.empty()) {
      ASSIGN_OR_RETURN(
          const int64_t of_run,
          RunSweep(store, blobs, run).Remove(std::span(names).subspan(begin, end - begin)));
      if (of_run > 0) {
        Log(LogLevel::kWarning, "removed stored files that belong to no record",
            {{"run", run}, {"files", of_run}});
      }
      removed += of_run;
    }
    begin = end;
  }
  return removed;
}

}  // namespace muster

#include "services/status/board/progress.h"

#include <algorithm>
#include <string>

#include "services/common/base/utf8.h"
#include "services/common/errors/heartbeats.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

constexpr int64_t kMaxCount = 1'000'000'000'000;
constexpr size_t kMaxMessage = 4096;
constexpr size_t kMaxName = 1024;
constexpr int kMaxNames = 100;

using Names = google::protobuf::RepeatedPtrField<std::string>;

// Returns how many of the oldest names it has removed.
int AddNames(const Names& from, Names* to) {
  const int removed = std::max(0, to->size() + from.size() - kMaxNames);
  const int skipped = std::max(0, removed - to->size());
  to->DeleteSubrange(0, removed - skipped);
  for (int i = skipped; i < from.size(); ++i) to->Add(std::string(CutUtf8(from[i], kMaxName)));
  return removed;
}

bool IsAppend(const v1::ReportProgressRequest& report) {
  return report.append_totals() || report.append_completed() != 0 ||
         report.append_failing_size() > 0;
}

}  // namespace

absl::Status CheckProgress(const v1::ReportProgressRequest& report) {
  for (const int64_t count : {report.total(), report.completed(), report.append_completed()}) {
    if (count < 0) return errors::InvalidProgress("a count is negative");
    if (count > kMaxCount) return errors::InvalidProgress("a count is too large");
  }
  return absl::OkStatus();
}

void ApplyProgress(const v1::ReportProgressRequest& report, absl::Time now,
                   v1::Progress* progress) {
  if (IsAppend(report)) {
    progress->set_completed(std::min(kMaxCount, progress->completed() + report.append_completed()));
    const int removed = AddNames(report.append_failing(), progress->mutable_failures());
    progress->set_omitted_failures(std::min(kMaxCount, progress->omitted_failures() + removed));
    if (report.append_totals()) {
      progress->set_total(std::min(
          kMaxCount, progress->total() + report.append_completed() + report.append_failing_size()));
    }
  } else {
    progress->Clear();
    progress->set_total(report.total());
    progress->set_completed(report.completed());
    progress->set_omitted_failures(AddNames(report.failures(), progress->mutable_failures()));
    progress->set_omitted_errors(AddNames(report.errors(), progress->mutable_errors()));
  }
  // A plugin without a total counts only.
  if (progress->total() > 0)
    progress->set_total(std::max(progress->total(), progress->completed()));
  progress->set_message(std::string(CutUtf8(report.message(), kMaxMessage)));
  ToProto(now, progress->mutable_time());
}

}  // namespace muster

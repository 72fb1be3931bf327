#include "services/status/board/progress.h"

#include <algorithm>
#include <string>

#include "services/common/base/utf8.h"
#include "services/common/heartbeat/progress_report.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

using Names = google::protobuf::RepeatedPtrField<std::string>;

// Returns how many of the oldest names it has removed.
int AddNames(const Names& from, Names* to) {
  const int removed = std::max(0, to->size() + from.size() - kMaxProgressNames);
  const int skipped = std::max(0, removed - to->size());
  to->DeleteSubrange(0, removed - skipped);
  for (int i = skipped; i < from.size(); ++i)
    to->Add(std::string(CutUtf8(from[i], kMaxProgressName)));
  return removed;
}

}  // namespace

void ApplyProgress(const v1::ReportProgressRequest& report, absl::Time now,
                   v1::Progress* progress) {
  if (IsAppend(report)) {
    progress->set_completed(
        std::min(kMaxProgressCount, progress->completed() + report.append_completed()));
    const int removed = AddNames(report.append_failing(), progress->mutable_failures());
    progress->set_omitted_failures(
        std::min(kMaxProgressCount, progress->omitted_failures() + removed));
    if (report.append_totals()) {
      progress->set_total(
          std::min(kMaxProgressCount,
                   progress->total() + report.append_completed() + report.append_failing_size()));
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
  progress->set_message(std::string(CutUtf8(report.message(), kMaxProgressMessage)));
  ToProto(now, progress->mutable_time());
}

}  // namespace muster

#include "services/common/heartbeat/progress_report.h"

#include "services/common/base/utf8.h"
#include "services/common/errors/heartbeats.h"

namespace muster {
namespace {

using Names = google::protobuf::RepeatedPtrField<std::string>;

void CutText(std::string* text, size_t max_bytes) {
  if (text->size() > max_bytes) *text = std::string(CutUtf8(*text, max_bytes));
}

void CutNames(Names* names) {
  const int omitted = names->size() - kMaxProgressNames;
  for (int i = 0; i < names->size(); ++i) {
    if (i < omitted) {
      std::string().swap(*names->Mutable(i));
    } else {
      CutText(names->Mutable(i), kMaxProgressName);
    }
  }
}

}  // namespace

bool IsAppend(const v1::ReportProgressRequest& report) {
  return report.append_totals() || report.append_completed() != 0 ||
         report.append_failing_size() > 0;
}

absl::Status CheckProgress(const v1::ReportProgressRequest& report) {
  for (const int64_t count : {report.total(), report.completed(), report.append_completed()}) {
    if (count < 0) return errors::InvalidProgress("a count is negative");
    if (count > kMaxProgressCount) return errors::InvalidProgress("a count is too large");
  }
  return absl::OkStatus();
}

void CutProgress(v1::ReportProgressRequest* report) {
  CutText(report->mutable_message(), kMaxProgressMessage);
  CutNames(report->mutable_failures());
  CutNames(report->mutable_errors());
  CutNames(report->mutable_append_failing());
}

}  // namespace muster

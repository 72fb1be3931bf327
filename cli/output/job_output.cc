#include "cli/output/job_output.h"

#include <ostream>

#include "absl/strings/str_cat.h"
#include "cli/exit_code.h"
#include "cli/output/format.h"
#include "cli/output/job_view.h"

namespace muster::cli {
namespace {

constexpr size_t kFailuresShown = 20;

}  // namespace

JobOutput::JobOutput(Console& console, bool json, JobReport report)
    : console_(console),
      json_(json),
      report_(report),
      lines_([this](const std::string& node, v1::JobStream stream, std::string_view line) {
        PrintLine(node, stream, line);
      }) {}

// Prints output unchanged for programs, and without control characters on a terminal.
void JobOutput::PrintLine(const std::string& node, v1::JobStream stream, std::string_view line) {
  HideSummary();
  std::ostream& to = stream == v1::JOB_STREAM_STDERR ? console_.err : console_.out;
  const bool terminal =
      stream == v1::JOB_STREAM_STDERR ? console_.err_is_terminal : console_.out_is_terminal;
  to << node << ": " << (terminal ? Printable(line) : std::string(line)) << "\n";
}

std::vector<std::string> JobOutput::WithoutAnswer(const std::vector<std::string>& nodes) const {
  std::vector<std::string> silent;
  for (const std::string& node : nodes) {
    if (!answered_.contains(node)) silent.push_back(node);
  }
  return silent;
}

void JobOutput::PrintNotice(const std::string& message) {
  HideSummary();
  PrintMessage(console_, message);
  if (!json_) ShowSummary(job_);
}

void JobOutput::HandleRecord(const v1::JobRecord& record, std::optional<int64_t> position) {
  if (!record.node().empty()) answered_.insert(record.node());
  if (json_) {
    if (record.has_final()) SetFailed(record);
    Json json = ToJson(record);
    if (position) json["position"] = *position;
    console_.out << Dump(json);
    return;
  }
  switch (record.record_case()) {
    case v1::JobRecord::kOutput:
      PrintCut(record.node());
      lines_.Add(record.node(), record.output());
      break;
    case v1::JobRecord::kCut:
      lines_.Finish(record.node());
      cut_[record.node()] += record.cut().bytes();
      break;
    case v1::JobRecord::kFinal:
      PrintCut(record.node());
      lines_.Finish(record.node());
      PrintUnverified(record);
      PrintRemark(record);
      PrintOutcome(record);
      break;
    case v1::JobRecord::kBranch:
      HideSummary();
      PrintMessage(console_, BranchText(record.branch()));
      break;
    default:
      break;
  }
}

void JobOutput::PrintCut(const std::string& node) {
  const auto cut = cut_.find(node);
  if (cut == cut_.end()) return;
  const int64_t bytes = cut->second;
  cut_.erase(cut);
  if (bytes == 0) return;
  HideSummary();
  PrintMessage(console_, absl::StrCat(node, ": [", HumanSize(bytes), " of output omitted]"));
}

// The outcome is the node's own: the root relay accepts no other. Final records of the root relay
// have no sequence.
void JobOutput::PrintUnverified(const v1::JobRecord& record) {
  if (record.sequence() == 0 || record.final().records_verified()) return;
  HideSummary();
  PrintMessage(
      console_,
      absl::StrCat(
          record.node(),
          ": the output is not what the node signed; it may have been changed or lost in transit"));
}

// A container can succeed although output was lost, or a process of it ended for lack of memory.
void JobOutput::PrintRemark(const v1::JobRecord& record) {
  if (!FailureText(record.final()).empty() || record.final().detail().empty()) return;
  HideSummary();
  PrintMessage(console_, absl::StrCat(record.node(), ": ", Printable(record.final().detail())));
}

bool JobOutput::SetFailed(const v1::JobRecord& record) {
  if (FailureText(record.final()).empty()) return failed_.erase(record.node()) > 0;
  next_steps_.Add(record.node(), record.final(), !job_.image().empty());
  return failed_.insert(record.node()).second;
}

void JobOutput::PrintOutcome(const v1::JobRecord& record) {
  const std::string failure = Printable(FailureText(record.final()));
  if (!SetFailed(record) || report_ == JobReport::kOutput) return;
  if (!failure.empty() && failed_.size() > kFailuresShown) return;
  HideSummary();
  PrintMessage(console_, failure.empty()
                             ? absl::StrCat(record.node(), " succeeded; its report came late")
                             : absl::StrCat(record.node(), " failed: ", failure));
}

void JobOutput::HandleResponse(const v1::WatchJobResponse& response) {
  if (response.has_job()) job_ = response.job();
  for (int i = 0; i < response.records_size(); ++i) {
    const bool last = i + 1 == response.records_size();
    HandleRecord(response.records(i), last ? std::optional(response.position()) : std::nullopt);
  }
  console_.out.flush();
  if (!json_) ShowSummary(job_);
}

void JobOutput::ShowSummary(const v1::Job& job) {
  if (!console_.err_is_terminal) return;
  console_.err << "\r\x1b[K" << Clip(SummaryLine(job), console_.width > 0 ? console_.width - 1 : 79)
               << std::flush;
  summary_shown_ = true;
}

void JobOutput::HideSummary() {
  if (!summary_shown_) return;
  console_.err << "\r\x1b[K" << std::flush;
  summary_shown_ = false;
}

int JobOutput::Finish(const v1::Job& job) {
  HideSummary();
  console_.out.flush();
  if (!json_ && report_ == JobReport::kAll) {
    if (failed_.size() > kFailuresShown) {
      PrintMessage(console_,
                   absl::StrCat("... and ", failed_.size() - kFailuresShown,
                                " more failed. List them: muster job show ", job.job(), " --json"));
    }
    PrintMessage(console_, absl::StrCat(SummaryLine(job), ". Job ", job.job(), ", ",
                                        StateWord(job.state()), "."));
    for (const std::string& step : next_steps_.Texts(job.job())) {
      PrintMessage(console_, " next: " + step);
    }
  }
  return job.succeeded() == job.targets() ? kExitOk : kExitJobFailed;
}

}  // namespace muster::cli

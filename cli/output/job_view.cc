#include "cli/output/job_view.h"

#include <csignal>
#include <cstring>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "cli/output/format.h"
#include "services/common/base/sha256.h"
#include "services/common/base/shell_quote.h"
#include "services/common/base/strings.h"
#include "services/common/base/utf8.h"
#include "services/common/identity/signed_command.h"
#include "services/common/rpc/proto_time.h"
#include "services/common/templates/exact_json.h"

namespace muster::cli {
namespace {

// Returns an enum name without its prefix: "timed-out" for "JOB_OUTCOME_TIMED_OUT".
std::string Word(std::string name, size_t prefix) {
  name = absl::AsciiStrToLower(name.substr(prefix));
  for (char& c : name) {
    if (c == '_') c = '-';
  }
  return name;
}

}  // namespace

std::string OutcomePhrase(v1::JobOutcome outcome) {
  if (outcome == v1::JOB_OUTCOME_UNKNOWN) return "unknown node";
  return absl::StrReplaceAll(OutcomeWord(outcome), {{"-", " "}});
}

Json ToJson(const v1::JobRecord::Final& final) {
  Json json = {{"outcome", OutcomeWord(final.outcome())}};
  json["exit_code"] = final.outcome() == v1::JOB_OUTCOME_EXITED && final.signal() == 0
                          ? Json(final.exit_code())
                          : Json(nullptr);
  if (final.signal() != 0) json["signal"] = final.signal();
  json["duration_ms"] = absl::ToInt64Milliseconds(FromProto(final.duration()));
  json["stdout_bytes"] = final.stdout_bytes();
  json["stderr_bytes"] = final.stderr_bytes();
  json["records_verified"] = final.records_verified();
  if (!final.reason().empty()) json["reason"] = final.reason();
  if (!final.detail().empty()) json["detail"] = final.detail();
  return json;
}

std::string OutcomeWord(v1::JobOutcome outcome) {
  return Word(v1::JobOutcome_Name(outcome), std::strlen("JOB_OUTCOME_"));
}

std::string StateWord(v1::JobState state) {
  return Word(v1::JobState_Name(state), std::strlen("JOB_STATE_"));
}

Json ToJson(const v1::Job& job) {
  Json argv = Json::array();
  for (const std::string& argument : job.argv()) argv.push_back(argument);
  Json classes = Json::array();
  for (const std::string& name : job.classes()) classes.push_back(name);
  Json outcomes = Json::object();
  for (const v1::JobOutcomeCount& entry : job.outcomes()) {
    outcomes[OutcomeWord(entry.outcome())] = entry.count();
  }
  return {{"job", job.job()},
          {"state", StateWord(job.state())},
          {"submitted_by", job.submitted_by()},
          {"submit_time", Rfc3339(FromProto(job.submit_time()))},
          {"end_time", Rfc3339(FromProto(job.end_time()))},
          {"late_time", job.has_late_time() ? Rfc3339(FromProto(job.late_time())) : ""},
          {"deadline", Rfc3339(FromProto(job.deadline()))},
          {"action", job.action()},
          {"argv", argv},
          {"classes", classes},
          {"image", job.image()},
          {"discard_output", job.discard_output()},
          {"targets", job.targets()},
          {"running", job.running()},
          {"outcomes", outcomes},
          {"succeeded", job.succeeded()},
          {"output_bytes", job.output_bytes()},
          {"cut_bytes", job.cut_bytes()}};
}

Json ToJson(const v1::JobRecord::Outputs& outputs) {
  Json json = Json::object();
  for (const auto& output : outputs.outputs()) {
    json[output.name()] = ParseExactJson<Json>(output.value()).value;
  }
  return json;
}

Json ToJson(const v1::JobRecord& record) {
  Json json = {{"job", record.job()}};
  if (!record.node().empty()) json["node"] = record.node();
  json["sequence"] = record.sequence();
  json["time"] = Rfc3339(FromProto(record.time()));
  switch (record.record_case()) {
    case v1::JobRecord::kStarted:
      json["event"] = "started";
      break;
    case v1::JobRecord::kOutput:
      json["event"] = record.output().stream() == v1::JOB_STREAM_STDERR ? "stderr" : "stdout";
      if (IsUtf8(record.output().data())) {
        json["data"] = record.output().data();
      } else {
        json["data_base64"] = absl::Base64Escape(record.output().data());
      }
      break;
    case v1::JobRecord::kCut:
      json["event"] = "cut";
      json["bytes"] = record.cut().bytes();
      break;
    case v1::JobRecord::kFinal:
      json["event"] = "final";
      json.update(ToJson(record.final()));
      break;
    case v1::JobRecord::kOutputs:
      json["event"] = "outputs";
      json["outputs"] = ToJson(record.outputs());
      break;
    case v1::JobRecord::kWorkspace:
      json["event"] = "workspace";
      json["workspace"] = record.workspace().workspace();
      json["version"] = record.workspace().version();
      json["sha256"] = ToHex(record.workspace().sha256());
      json["size"] = record.workspace().size();
      json["omitted"] = record.workspace().omitted();
      break;
    case v1::JobRecord::kBranch:
      json["event"] = absl::StrCat(record.branch().relay().empty() ? "nodes" : "branch",
                                   record.branch().lost() ? "-lost" : "-back");
      json["relay"] = record.branch().relay();
      json["waiting"] = record.branch().waiting();
      json["detail"] = record.branch().detail();
      break;
    default:
      break;
  }
  return json;
}

int64_t DoneCount(const v1::Job& job) {
  int64_t done = 0;
  for (const v1::JobOutcomeCount& entry : job.outcomes()) done += entry.count();
  return done;
}

std::string SummaryLine(const v1::Job& job) {
  const int64_t done = DoneCount(job);
  const int64_t failed = done - job.succeeded();
  std::string line =
      absl::StrCat(done, " of ", job.targets(), job.targets() == 1 ? " node done" : " nodes done");
  if (failed > 0) absl::StrAppend(&line, " (", failed, " failed)");
  const int64_t waiting = job.targets() - done - job.running();
  if (job.running() > 0) absl::StrAppend(&line, ", ", job.running(), " running");
  if (waiting > 0) absl::StrAppend(&line, ", ", waiting, " waiting");
  return line;
}

std::string FailureText(const v1::JobRecord::Final& final) {
  if (final.outcome() == v1::JOB_OUTCOME_EXITED) {
    if (final.signal() != 0) {
      const char* name = ::sigabbrev_np(final.signal());
      return absl::StrCat("killed by signal ",
                          name == nullptr ? "" : absl::StrCat("SIG", name, " "), "(",
                          final.signal(), ")");
    }
    if (final.exit_code() == 0) return "";
    return absl::StrCat("exit code ", final.exit_code(), final.detail().empty() ? "" : ": ",
                        final.detail());
  }
  std::vector<std::string> parts = {OutcomePhrase(final.outcome()), final.reason(), final.detail()};
  std::erase(parts, "");
  // The reason or the detail says more than the word "failed".
  if (final.outcome() == v1::JOB_OUTCOME_FAILED && parts.size() > 1) parts.erase(parts.begin());
  return absl::StrJoin(parts, ": ");
}

std::string OutcomeText(const v1::JobRecord::Final& final) {
  const bool has_word =
      final.outcome() != v1::JOB_OUTCOME_EXITED && final.outcome() != v1::JOB_OUTCOME_FAILED;
  return absl::StrCat(has_word ? "" : "failed: ", FailureText(final));
}

std::string BranchText(const v1::JobRecord::Branch& branch) {
  return Printable(absl::StrReplaceAll(
      branch.detail(), {{absl::FormatTime("%Y-%m-%d ", absl::Now(), absl::UTCTimeZone()), ""}}));
}

std::string ShortName(std::string_view uri) {
  absl::string_view name = ToAbsl(uri);
  if (!absl::ConsumePrefix(&name, "spiffe://")) return std::string(uri);
  const size_t fleet = name.find('/');
  if (fleet == absl::string_view::npos) return std::string(uri);
  name.remove_prefix(fleet + 1);
  absl::ConsumePrefix(&name, "user/");
  return std::string(name);
}

std::string QuotedCommand(const v1::Job& job, const std::string& subject) {
  if (job.action() == kDeploymentAction) {
    if (!subject.empty()) return absl::StrCat("deployment of ", subject);
    return absl::StrCat("deployment of the image ", job.image().substr(0, job.image().find('@')));
  }
  if (job.action() == kBuildAction) {
    return absl::StrCat("build of ", subject.empty() ? "an image" : subject);
  }
  if (job.argv_size() == 0 && !job.image().empty()) return "the command of the image";
  if (job.argv_size() > 0) return absl::StrJoin(job.argv(), " ", AppendShellWord);
  // An action without arguments, such as a remote run of Rudder, is defined by the node's policy.
  return absl::StrCat(job.action(), job.classes().empty() ? "" : " -D ",
                      absl::StrJoin(job.classes(), ",", AppendShellWord));
}

}  // namespace muster::cli

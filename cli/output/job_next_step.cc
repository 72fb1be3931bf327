#include "cli/output/job_next_step.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cli/output/format.h"
#include "services/common/base/error.h"
#include "services/common/errors/jobs.h"

namespace muster::cli {

std::string NextStepAfter(const v1::JobRecord::Final& final, bool in_container) {
  const bool exited = final.outcome() == v1::JOB_OUTCOME_EXITED;
  if (exited && final.exit_code() == 0 && final.signal() == 0) return "";
  const absl::Status not_admitted = errors::ContainerNotAdmitted("", "", "");
  if (in_container && final.reason() == ReasonOf(not_admitted)) return NextStepOf(not_admitted);
  const std::string_view of_reason = errors::OutcomeNextStep(final.reason());
  if (!of_reason.empty()) return std::string(of_reason);
  return std::string(errors::OutcomeNextStep(v1::JobOutcome_Name(final.outcome())));
}

void NextSteps::Add(const std::string& node, const v1::JobRecord::Final& final, bool in_container) {
  const std::string step = NextStepAfter(final, in_container);
  if (step.empty()) return;
  const auto [entry, is_new] = steps_.try_emplace(step, Nodes{node});
  if (!is_new && entry->second.first != node) entry->second.has_more = true;
}

std::vector<std::string> NextSteps::Texts(const std::string& job,
                                          const std::string& deployment) const {
  const std::string logs = deployment.empty() ? absl::StrCat("muster job logs ", job)
                                              : absl::StrCat("muster deployment logs ", deployment);
  std::vector<std::string> texts;
  for (const auto& [step, nodes] : steps_) {
    std::string text = absl::StrReplaceAll(
        step, {{"muster job logs JOB --node NAME, or muster deployment logs DEPLOYMENT", logs}});
    if (!deployment.empty()) {
      text =
          absl::StrReplaceAll(text, {{"muster deployment retry.",
                                      absl::StrCat("muster deployment retry ", deployment, ".")}});
    }
    if (!nodes.has_more) {
      const std::string name = Printable(nodes.first);
      text = absl::StrReplaceAll(text, {{"--node NAME", absl::StrCat("--node ", name)},
                                        {"node show NAME", absl::StrCat("node show ", name)}});
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace muster::cli

#include "services/aggregator/verdicts/verdicts.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/log.h"
#include "services/common/base/strings.h"
#include "services/common/base/utc_text.h"
#include "services/common/base/utf8.h"

namespace muster {
namespace {

// The texts of the status service are stored for people, so they are truncated.
constexpr size_t kMaxLostText = 2048;
constexpr size_t kMaxStartGraceText = size_t{16} << 10;

}  // namespace

void Verdicts::Lose(const ResultKey& key, std::string_view why, absl::Time since, Done done) {
  TimeOutPair command;
  command.key = key;
  command.error = absl::StrCat("lost: ", ToAbsl(CutUtf8(why, kMaxLostText)));
  if (since != absl::InfinitePast()) {
    absl::StrAppend(&command.error, "; silent since ", UtcText(since));
  }
  command.actor = actor_;
  command.at = absl::ToUnixMicros(clock_.Now());
  const std::string error = command.error;
  store_.Apply(std::move(command), [this, key, error, done = std::move(done)](
                                       absl::StatusOr<TimeOutPair::Result> outcome) mutable {
    if (outcome.ok() && outcome->changed) {
      ++lost_;
      Log(LogLevel::kInfo, outcome->failed ? "a pair is lost; its run failed" : "a pair is lost",
          {{"run", key.run}, {"plugin", key.plugin}, {"node", key.node}, {"why", error}});
    }
    done(outcome.status());
  });
}

void Verdicts::StartGraceExpired(const std::string& run, std::string_view why, Done done) {
  EndRun command;
  command.run = run;
  command.state = RunState::kFailed;
  command.reason = absl::StrCat("no agent reported within the start grace: ",
                                ToAbsl(CutUtf8(why, kMaxStartGraceText)));
  command.actor = actor_;
  command.at = absl::ToUnixMicros(clock_.Now());
  command.only_planned = true;
  store_.Apply(std::move(command),
               [this, run, done = std::move(done)](absl::StatusOr<EndRun::Result> outcome) mutable {
                 if (outcome.ok() && outcome->changed) {
                   ++start_grace_expired_;
                   Log(LogLevel::kWarning, "no agent reported; the run failed", {{"run", run}});
                 }
                 done(outcome.status());
               });
}

}  // namespace muster

#include "cli/commands/verify_command.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/output/damage_view.h"
#include "cli/output/format.h"
#include "cli/output/json_view.h"
#include "cli/rpc/run_reference.h"
#include "cli/rpc/session.h"
#include "services/common/base/status_macros.h"

namespace muster::cli {
namespace {

constexpr absl::Duration kReportPeriod = absl::Seconds(10);

void Print(Console& console, const Verification& verification) {
  if (!verification.damaged.empty()) {
    console.out << DamageTable(verification.damaged, /*with_run=*/true, console.width);
  }
  const v1::VerifyStoreResponse& last = verification.last;
  if (!last.database_damage().empty()) {
    PrintMessage(console, absl::StrCat("The database is damaged: ", last.database_damage(),
                                       ". Stop the services, and restore a backup."));
  }
  if (last.removed_files() > 0) {
    PrintMessage(console, absl::StrCat("Removed stored files that belonged to no record: ",
                                       last.removed_files(), "."));
  }
  PrintMessage(console, VerificationText(verification));
  const std::string redelivery = RedeliveryText(verification.damaged);
  if (!redelivery.empty()) PrintMessage(console, redelivery);
}

absl::StatusOr<int> Verify(Console& console, const CommandLine& line, const std::string& run) {
  CatchInterrupts();
  ASSIGN_OR_RETURN(const auto client, Connect(line.context_file));
  std::string id;
  if (!run.empty()) {
    ASSIGN_OR_RETURN(id, ResolveRun(*client, run));
  }
  Verification verification;
  absl::Time reported_at = absl::Now();
  const absl::Status end = client->VerifyStore(id, [&](const v1::VerifyStoreResponse& report) {
    verification.last = report;
    verification.damaged.insert(verification.damaged.end(), report.damaged().begin(),
                                report.damaged().end());
    if (absl::Now() - reported_at < kReportPeriod || report.complete()) return;
    reported_at = absl::Now();
    PrintMessage(console, absl::StrCat("Verified so far: ", VerifiedText(report), "."));
  });
  if (line.json) {
    console.out << Dump(VerificationJson(verification));
  } else {
    Print(console, verification);
  }
  if (Interrupted()) return kExitInterrupted;
  RETURN_IF_ERROR(end);
  return IsSound(verification) ? kExitOk : kExitDamaged;
}

}  // namespace

void AddVerifyCommand(CommandLine& line) {
  CLI::App& command = AddCommand(
      line.app,
      {.name = "verify",
       .summary = "Compare the stored results with their checksums",
       .details =
           "The aggregator reads every stored result and archive while it serves, checks its "
           "database, and removes stored files that belong to no record. A damaged result cannot "
           "be read until the same content is delivered again, or its file is restored. It is "
           "requested from its node: the table shows that, or why the node declined.\n"
           "The exit code is 10 if anything is damaged. The JSON has complete: false if the "
           "verification did not end, for example because the services do not run.",
       .example = "muster verify\nmuster verify 3f2a --json | jq '.damaged[]'"});
  const auto run = std::make_shared<std::string>();
  command
      .add_option("RUN", *run,
                  "The id of the run, or a unique prefix of it (default: the whole store)")
      ->type_name("");
  AddJsonOption(line, command);
  AddContextOption(line, command);
  SetAction(line, command, [&line, run](Console& console) { return Verify(console, line, *run); });
}

}  // namespace muster::cli

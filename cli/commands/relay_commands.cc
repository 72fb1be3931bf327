#include "cli/commands/relay_commands.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/commands/token_file.h"
#include "cli/exit_code.h"
#include "cli/output/format.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/text_values.h"
#include "services/common/joining/join_fleet.h"

namespace muster::cli {
namespace {

struct JoinArguments {
  std::string token_file;
  std::string folder;
  std::vector<std::string> advertise;
  std::vector<std::string> join_advertise;
};

absl::Status CheckAddresses(const std::string& option, const std::vector<std::string>& addresses) {
  for (const std::string& address : addresses) {
    const auto parsed = ParseHostPort(address);
    if (!parsed || parsed->port == 0) {
      return UsageError(absl::StrCat(option, ": \"", address, "\" is not host:port"),
                        "Name a host and a port, such as relay1.example.org:7445.");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Join(Console& console, const JoinArguments& arguments) {
  RETURN_IF_ERROR(CheckAddresses("--advertise", arguments.advertise));
  RETURN_IF_ERROR(CheckAddresses("--join-advertise", arguments.join_advertise));
  ASSIGN_OR_RETURN(const auto token, ReadTokenFile(arguments.token_file));
  const auto joined =
      JoinAsRelay(token, {arguments.advertise, arguments.join_advertise}, arguments.folder);
  if (!joined.ok()) return JoinFailure(joined.status(), "relay " + token.node);
  Say(console, absl::StrCat("This machine is relay ", joined->name, " of fleet ", token.fleet,
                            ".\nIts identity is in ", arguments.folder, ", valid until ",
                            HumanTime(joined->certificate_ends, absl::Now(), absl::LocalTimeZone()),
                            " and renewed by muster-relay while that runs."));
  return kExitOk;
}

}  // namespace

void AddRelayCommands(CommandLine& line) {
  CLI::App& group = AddCommand(line.app, {.name = "relay",
                                          .summary = "Join as a relay",
                                          .example = "muster relay join --token-file r1.token "
                                                     "--dir /var/lib/muster-relay "
                                                     "--advertise r1.example.org:7445"});
  group.require_subcommand(1);
  CLI::App& command = AddCommand(
      group,
      {.name = "join",
       .summary = "On a machine: join the fleet as a relay with a token",
       .details = "The relay's key is made here and never sent. muster-relay runs with the folder "
                  "as its\nstate_folder. An answer that was lost is asked for again by the same "
                  "command, within\nthe token's time.",
       .example = "muster token create --relay r1 -o r1.token\n"
                  "muster relay join --token-file r1.token --dir /var/lib/muster-relay "
                  "--advertise r1.example.org:7445"});
  const auto arguments = std::make_shared<JoinArguments>();
  command.add_option("--token-file", arguments->token_file, "The token's file; - for stdin")
      ->required()
      ->type_name(kFileValue);
  command.add_option("--dir", arguments->folder, "Where the identity is kept")
      ->required()
      ->type_name(kFolderValue);
  command.add_option("--advertise", arguments->advertise, "Where what hangs below it reaches it")
      ->required()
      ->delimiter(',')
      ->type_name("HOST:PORT");
  command
      .add_option("--join-advertise", arguments->join_advertise,
                  "Where machines join through it (default: nowhere)")
      ->delimiter(',')
      ->type_name("HOST:PORT");
  SetAction(line, command, [arguments](Console& console) { return Join(console, *arguments); });
}

}  // namespace muster::cli

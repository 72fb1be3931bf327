#include "cli/commands/relay_commands.h"

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
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
  std::string link;
};

absl::Status CheckAddresses(const std::string& option, const std::vector<std::string>& addresses) {
  for (const std::string& address : addresses) {
    const auto parsed = ParseHostPort(address);
    if (!parsed || parsed->port == 0) {
      return UsageError(absl::StrCat(option, ": \"", address, "\" is not host:port"),
                        "Write HOST:PORT, such as relay1.example.org:7445.");
    }
  }
  return absl::OkStatus();
}

// Returns the lines of a configuration of muster-relay. It listens on all addresses, at the ports
// of the first declared ones.
std::string ConfigurationText(const JoinArguments& arguments) {
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::absolute(arguments.folder, ignored);
  std::string text =
      absl::StrCat("state_folder: ", folder.string(),
                   "\nlisten: 0.0.0.0:", ParseHostPort(arguments.advertise.front())->port, "\n");
  if (!arguments.join_advertise.empty()) {
    absl::StrAppend(&text,
                    "join_listen: 0.0.0.0:", ParseHostPort(arguments.join_advertise.front())->port,
                    "\n");
  }
  return text;
}

absl::StatusOr<int> Join(Console& console, const JoinArguments& arguments) {
  RETURN_IF_ERROR(CheckAddresses("--advertise", arguments.advertise));
  RETURN_IF_ERROR(CheckAddresses("--join-advertise", arguments.join_advertise));
  ASSIGN_OR_RETURN(const auto token, ReadTokenFile(arguments.token_file));
  const auto joined = JoinAsRelay(token, {arguments.advertise, arguments.join_advertise},
                                  arguments.folder, arguments.link);
  if (!joined.ok()) return MarkJoinError(joined.status(), "relay " + token.node);
  PrintMessage(console,
               absl::StrCat("This machine is relay ", joined->name, " of fleet ", token.fleet,
                            ".\nIts identity is in ", arguments.folder, ", valid until ",
                            HumanTime(joined->certificate_ends, absl::Now()),
                            ".\nmuster-relay renews it while it is running. Start it: "
                            "muster-relay --config relay.yaml, a file with these lines:\n"));
  console.out << ConfigurationText(arguments);
  return kExitOk;
}

}  // namespace

void AddRelayCommands(CommandLine& line) {
  CLI::App& group = AddCommand(line.app, {.name = "relay",
                                          .summary = "Join this machine as a relay",
                                          .example = "muster relay join --token-file r1.token "
                                                     "--dir /var/lib/muster-relay "
                                                     "--advertise r1.example.org:7445"});
  group.require_subcommand(1);
  CLI::App& command = AddCommand(
      group,
      {.name = "join",
       .summary = "Join this machine to the fleet as a relay",
       .details =
           "The relay's key is generated here and never sent. If the answer was lost, repeat "
           "the same command before the token expires.\n"
           "Prints the configuration with which muster-relay serves the folder and the "
           "declared addresses.",
       .example = "muster token create --relay r1 -o r1.token\n"
                  "muster relay join --token-file r1.token --dir /var/lib/muster-relay "
                  "--advertise r1.example.org:7445"});
  const auto arguments = std::make_shared<JoinArguments>();
  command.add_option("--token-file", arguments->token_file, "The token file, or - for stdin")
      ->required()
      ->type_name(kFileValue);
  command.add_option("--dir", arguments->folder, "The folder of the identity")
      ->required()
      ->type_name(kFolderValue);
  command
      .add_option("--advertise", arguments->advertise,
                  "Addresses at which nodes and relays reach this relay")
      ->required()
      ->delimiter(',')
      ->type_name("HOST:PORT,...");
  command
      .add_option("--join-advertise", arguments->join_advertise,
                  "Addresses at which machines join through this relay (default: none)")
      ->delimiter(',')
      ->type_name("HOST:PORT,...");
  AddLinkOption(command, arguments->link);
  SetAction(line, command, [arguments](Console& console) { return Join(console, *arguments); });
}

}  // namespace muster::cli

#include "cli/commands/share_commands.h"

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/commands/fleet_list.h"
#include "cli/commands/fleet_shares.h"
#include "cli/commands/share_view.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/output/format.h"
#include "cli/output/json_view.h"
#include "cli/output/table.h"
#include "cli/rpc/session.h"
#include "cli/rpc/share_client.h"
#include "services/agent/agent_config.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/identity/share_signature.h"

namespace muster::cli {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(250);

struct ShareArguments {
  std::string file;
  std::string target;
  std::string source;
  std::string id;
  std::string ttl;
  std::string wait;
  std::string output;
  std::string folder;
  // Of an operator.
  std::string relay;
  bool all = false;
};

void Quiet(int64_t, int64_t) {}

absl::StatusOr<std::unique_ptr<ShareClient>> OpenClient(const ShareArguments& arguments) {
  return ShareClient::Open(arguments.folder.empty() ? DefaultNodeFolder(::getenv)
                                                    : arguments.folder);
}

// Who names both ends asks as an operator, and who names a relay.
bool AsOperator(const ShareArguments& arguments) {
  return arguments.all || !arguments.relay.empty() ||
         (!arguments.source.empty() && !arguments.target.empty());
}

absl::StatusOr<std::unique_ptr<FleetShares>> OpenFleet(const CommandLine& line) {
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  return std::make_unique<FleetShares>(context);
}

// What the user named. `self` is the node whose folder it is: the file was shared by it, or with
// it; nobody, of an operator.
absl::StatusOr<v1::ShareKey> KeyOf(const std::string& self, const ShareArguments& arguments) {
  const bool from = !arguments.source.empty();
  const bool to = !arguments.target.empty();
  if (self.empty() ? !from || !to : from == to) {
    return UsageError("say which file: --from or --to is needed, by operators both",
                      "--from NODE for one that was shared with this node, --to NODE for one that "
                      "this node shared.");
  }
  v1::ShareKey key;
  key.set_source(from ? arguments.source : self);
  key.set_target(to ? arguments.target : self);
  key.set_id(arguments.id);
  RETURN_IF_ERROR(ValidateShareKey(key));
  return key;
}

absl::StatusOr<absl::Duration> DurationOption(const std::string& option, const std::string& text,
                                              absl::Duration usual) {
  if (text.empty()) return usual;
  const auto duration = DurationArgument(text);
  if (duration.ok()) return duration;
  return UsageError(absl::StrCat(option, ": ", std::string(duration.status().message())),
                    NextStepOf(duration.status()));
}

// Whether a relay that comes back, or an agent that attaches again, may help.
bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         ReasonOf(status) == "NOT_ATTACHED";
}

// Leaves the file at the relay, going on where it broke until then.
absl::StatusOr<v1::Share> Leave(Console& console, ShareClient& client,
                                const ShareArguments& arguments, absl::Duration ttl,
                                absl::Time until) {
  const std::string id = arguments.id.empty()
                             ? std::filesystem::path(arguments.file).filename().string()
                             : arguments.id;
  auto share = client.Share(arguments.file, arguments.target, id, ttl, Quiet);
  if (share.ok() || !MayPass(share.status()) || Interrupted()) return share;
  Say(console, absl::StrCat("It is tried again for up to ", HumanDuration(until - absl::Now()),
                            ": ", std::string(share.status().message())));
  while (!share.ok() && MayPass(share.status()) && absl::Now() < until &&
         SleepUnlessInterrupted(kPause)) {
    share = client.Share(arguments.file, arguments.target, id, ttl, Quiet);
  }
  return share;
}

// Until it has arrived, or will not, or `until`.
absl::StatusOr<v1::Share> Await(ShareClient& client, v1::Share share, absl::Time until) {
  const v1::ShareKey key = share.file().key();
  while (share.state() == v1::SHARE_STATE_IN_TRANSIT && absl::Now() < until &&
         SleepUnlessInterrupted(kPause)) {
    auto now = client.Get(key);
    if (now.ok()) {
      share = *std::move(now);
    } else if (!MayPass(now.status())) {
      return now.status();
    }
  }
  return share;
}

absl::StatusOr<int> ShareFile(Console& console, const CommandLine& line,
                              const ShareArguments& arguments) {
  CatchInterrupts();
  ASSIGN_OR_RETURN(const auto ttl,
                   DurationOption("--ttl", arguments.ttl, absl::InfiniteDuration()));
  ASSIGN_OR_RETURN(const auto wait, DurationOption("--wait", arguments.wait, absl::Seconds(10)));
  ASSIGN_OR_RETURN(const auto client, OpenClient(arguments));
  const absl::Time until = absl::Now() + wait;
  const auto share = Leave(console, *client, arguments, ttl, until);
  if (Interrupted()) return kExitInterrupted;
  if (!share.ok()) return share.status();
  ASSIGN_OR_RETURN(const auto end, Await(*client, *share, until));
  return TellOutcome(console, line, end);
}

absl::StatusOr<int> List(Console& console, const CommandLine& line,
                         const ShareArguments& arguments) {
  if (AsOperator(arguments)) {
    const auto fleet = OpenFleet(line);
    return fleet.ok() ? ListFleetShares(console, line, **fleet, arguments.relay) : fleet.status();
  }
  ASSIGN_OR_RETURN(const auto client, OpenClient(arguments));
  ASSIGN_OR_RETURN(const auto shares, client->List());
  if (line.json) {
    Json json = Json::array();
    for (const v1::Share& share : shares) json.push_back(ToJson(share));
    console.out << Dump(json);
    return kExitOk;
  }
  Table table({{"FROM"}, {"FOR"}, {"ID"}, {"SIZE", Table::Align::kRight}, {"EXPIRES"}, {"STATE"}});
  for (const v1::Share& share : shares) {
    const v1::SharedFile& file = share.file();
    table.AddRow({file.key().source(), file.key().target(), file.key().id(), HumanSize(file.size()),
                  Expiry(file), StateWord(share.state())});
  }
  console.out << table.Render(console.width);
  return kExitOk;
}

absl::StatusOr<int> Get(Console& console, const CommandLine&, const ShareArguments& arguments) {
  CatchInterrupts();
  ASSIGN_OR_RETURN(const auto client, OpenClient(arguments));
  ASSIGN_OR_RETURN(const auto key, KeyOf(client->node(), arguments));
  const absl::Status fetched = client->Fetch(key, arguments.output, Quiet);
  if (Interrupted()) return kExitInterrupted;
  if (!fetched.ok()) return fetched;
  Say(console, absl::StrCat("What ", key.source(), " signed is in ", arguments.output, "."));
  return kExitOk;
}

absl::StatusOr<int> Remove(Console& console, const CommandLine& line,
                           const ShareArguments& arguments) {
  absl::Status removed;
  if (AsOperator(arguments)) {
    ASSIGN_OR_RETURN(const auto key, KeyOf("", arguments));
    const auto fleet = OpenFleet(line);
    removed = fleet.ok() ? (*fleet)->Remove(key, arguments.relay) : fleet.status();
  } else {
    ASSIGN_OR_RETURN(const auto client, OpenClient(arguments));
    const auto key = KeyOf(client->node(), arguments);
    removed = key.ok() ? client->Remove(*key) : key.status();
  }
  if (!removed.ok()) return removed;
  Say(console, absl::StrCat(arguments.id, " is removed."));
  return kExitOk;
}

absl::StatusOr<v1::Share> GetShare(const CommandLine& line, const ShareArguments& arguments) {
  if (AsOperator(arguments)) {
    ASSIGN_OR_RETURN(const auto key, KeyOf("", arguments));
    ASSIGN_OR_RETURN(const auto fleet, OpenFleet(line));
    return fleet->Get(key, arguments.relay);
  }
  ASSIGN_OR_RETURN(const auto client, OpenClient(arguments));
  ASSIGN_OR_RETURN(const auto key, KeyOf(client->node(), arguments));
  return client->Get(key);
}

absl::StatusOr<int> Outcome(Console& console, const CommandLine& line,
                            const ShareArguments& arguments) {
  ASSIGN_OR_RETURN(const auto share, GetShare(line, arguments));
  return TellOutcome(console, line, share);
}

using Act = absl::StatusOr<int> (*)(Console&, const CommandLine&, const ShareArguments&);

CLI::App& AddOne(CommandLine& line, CLI::App& parent, const CommandText& text,
                 const std::shared_ptr<ShareArguments>& arguments, Act act) {
  CLI::App& command = AddCommand(parent, text);
  command
      .add_option("--dir", arguments->folder,
                  "What muster node join made (default: $MUSTER_HOME/node, as root "
                  "/var/lib/muster-node)")
      ->type_name(kFolderValue);
  SetAction(line, command,
            [&line, arguments, act](Console& console) { return act(console, line, *arguments); });
  return command;
}

void AddKey(CLI::App& command, ShareArguments& arguments, bool both) {
  command.add_option("--from", arguments.source, "The node that shared it")->type_name("NODE");
  if (both) {
    command.add_option("--to", arguments.target, "The node that it was shared with")
        ->type_name("NODE");
  }
  command.add_option("--id", arguments.id, "Its id")->required()->type_name("ID");
}

// For what operators may do, too.
void AddOperatorOptions(CommandLine& line, CLI::App& command, ShareArguments& arguments) {
  command
      .add_option("--relay", arguments.relay,
                  "As an operator: the relay that is asked (default: the relays of both nodes)")
      ->type_name("RELAY");
  AddContextOption(line, command);
}

void AddShare(CommandLine& line, const std::shared_ptr<ShareArguments>& arguments) {
  CLI::App& command = AddOne(
      line, line.app,
      {.name = "share",
       .summary = "On a node: leave a file for another node",
       .details = "The file is signed here and goes over the relays to the one that the other node "
                  "is attached to;\nwhat is there already is not sent again. It is kept on its way "
                  "as long as a relay cannot be\nreached, and this program ends with 0 then too: "
                  "`muster shared outcome` tells what came of it.",
       .example = "muster share report.csv --to n2\n"
                  "muster share report.csv --to n2 --id today.csv --ttl 24h"},
      arguments, ShareFile);
  command.add_option("FILE", arguments->file, "The file")->required()->type_name(kFileValue);
  command.add_option("--to", arguments->target, "The node that may have it")
      ->required()
      ->type_name("NODE");
  command.add_option("--id", arguments->id, "What it is called there (default: the file's name)")
      ->type_name("ID");
  command.add_option("--ttl", arguments->ttl, "How long it is kept (default: it never expires)")
      ->type_name("DURATION");
  command
      .add_option("--wait", arguments->wait,
                  "How long to wait until it has arrived, and for a relay that is away (default: "
                  "10s)")
      ->type_name("DURATION");
  AddJsonOption(line, command);
}

}  // namespace

void AddShareCommands(CommandLine& line) {
  const auto arguments = std::make_shared<ShareArguments>();
  AddShare(line, arguments);
  CLI::App& group =
      AddCommand(line.app, {.name = "shared",
                            .summary = "Files from and for other nodes; for operators: "
                                       "all of them",
                            .example = "muster shared list"});
  group.require_subcommand(1);
  CLI::App& list = AddOne(line, group,
                          {.name = "list",
                           .summary = "List what is here for this node, and what it shared",
                           .details = "With --all or --relay, as an operator: what lies at which "
                                      "relay, since when, until when,\nand how much of its room "
                                      "is taken.",
                           .example = "muster shared list\n"
                                      "muster shared list --all"},
                          arguments, List);
  list.add_flag("--all", arguments->all, "As an operator: what lies at every relay");
  list.add_option("--relay", arguments->relay, "As an operator: what lies at this relay")
      ->type_name("RELAY");
  AddContextOption(line, list);
  AddJsonOption(line, list);
  CLI::App& get = AddOne(
      line, group,
      {.name = "get",
       .summary = "Get a file that another node shared with this one",
       .details = "It is in its place only when all of it is there and is what the other node "
                  "signed; what an\ninterrupted try has left in PATH.part is not fetched again.",
       .example = "muster shared get --from n1 --id report.csv -o report.csv"},
      arguments, Get);
  AddKey(get, *arguments, /*both=*/false);
  get.add_option("-o,--output", arguments->output, "Where it goes")
      ->required()
      ->type_name(kFileValue);
  CLI::App& remove = AddOne(line, group,
                            {.name = "remove",
                             .summary = "Remove a shared file from the relays",
                             .details = "On a node with --from or --to; as an operator with both: "
                                        "the audit log has it then.",
                             .example = "muster shared remove --from n1 --id report.csv\n"
                                        "muster shared remove --to n2 --id report.csv\n"
                                        "muster shared remove --from n1 --to n2 --id report.csv"},
                            arguments, Remove);
  AddKey(remove, *arguments, /*both=*/true);
  AddOperatorOptions(line, remove, *arguments);
  CLI::App& outcome = AddOne(line, group,
                             {.name = "outcome",
                              .summary = "Show whether a shared file has arrived",
                              .details = "Exit code 0 if it has, or is on its way; 1 if it was "
                                         "refused, has expired or was removed.\nOn a node with "
                                         "--from or --to; as an operator with both.",
                              .example = "muster shared outcome --to n2 --id report.csv"},
                             arguments, Outcome);
  AddKey(outcome, *arguments, /*both=*/true);
  AddOperatorOptions(line, outcome, *arguments);
  AddJsonOption(line, outcome);
}

}  // namespace muster::cli

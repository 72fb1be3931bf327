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
#include "services/common/base/strings.h"
#include "services/common/errors/cli.h"
#include "services/common/identity/share_signature.h"

namespace muster::cli {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(250);
constexpr char kGiveBoth[] = "give both --from and --to";

struct ShareArguments {
  std::string file;
  std::string target;
  std::string source;
  std::string id;
  std::string ttl;
  std::string wait;
  std::string output;
  std::string folder;
  // For operators.
  std::string relay;
  bool all = false;
};

void IgnoreProgress(int64_t, int64_t) {}

absl::StatusOr<std::unique_ptr<ShareClient>> OpenClient(const ShareArguments& arguments) {
  return ShareClient::Open(NodeFolderPath(arguments.folder, ::getenv));
}

// Returns the client of this machine's node, for commands that operators may call too.
// `as_operator`: what an operator does instead.
absl::StatusOr<std::unique_ptr<ShareClient>> OpenNode(const ShareArguments& arguments,
                                                      std::string_view as_operator) {
  auto client = OpenClient(arguments);
  if (ReasonOf(client.status()) != "NOT_JOINED") return client;
  return errors::NotANode(ToStd(client.status().message()), as_operator);
}

// Returns true for requests that only operators make: they name both nodes, a relay, or --all.
bool IsOperatorRequest(const ShareArguments& arguments) {
  return arguments.all || !arguments.relay.empty() ||
         (!arguments.source.empty() && !arguments.target.empty());
}

absl::StatusOr<std::unique_ptr<FleetShares>> OpenFleet(const CommandLine& line) {
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  return std::make_unique<FleetShares>(context);
}

// Returns the key of the named file. `self` is the node of the folder: the source or the target of
// the file. It is empty for operators.
absl::StatusOr<v1::ShareKey> KeyOf(const std::string& self, const ShareArguments& arguments) {
  const bool from = !arguments.source.empty();
  const bool to = !arguments.target.empty();
  if (self.empty() ? !from || !to : from == to) {
    return UsageError("--from or --to is required; operators must give both",
                      "Use --from NODE for a file that was shared with this node, --to NODE for a "
                      "file that this node shared.");
  }
  v1::ShareKey key;
  key.set_source(from ? arguments.source : self);
  key.set_target(to ? arguments.target : self);
  key.set_id(arguments.id);
  RETURN_IF_ERROR(AsUsageError(ValidateShareKey(key)));
  return key;
}

absl::StatusOr<absl::Duration> DurationOption(const std::string& option, const std::string& text,
                                              absl::Duration fallback) {
  if (text.empty()) return fallback;
  const auto duration = DurationArgument(text);
  return duration.ok() ? duration : AsUsageError(duration.status(), option);
}

// Returns true if the error may disappear when a relay returns or the agent attaches again.
bool IsRetryable(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         ReasonOf(status) == "NOT_ATTACHED";
}

// Uploads the file to the relay. Retries, and resumes the upload, until `until`.
absl::StatusOr<v1::Share> UploadWithRetry(Console& console, ShareClient& client,
                                          const ShareArguments& arguments, absl::Duration ttl,
                                          absl::Time until) {
  const std::string id = arguments.id.empty()
                             ? std::filesystem::path(arguments.file).filename().string()
                             : arguments.id;
  auto share = client.Share(arguments.file, arguments.target, id, ttl, IgnoreProgress);
  if (ReasonOf(share.status()) == "INVALID_SHARE" && arguments.id.empty()) {
    return AsUsageError(errors::FileNameIsNoShareId(Printable(id)));
  }
  if (share.ok() || !IsRetryable(share.status()) || Interrupted() || absl::Now() >= until) {
    return share;
  }
  PrintMessage(console, absl::StrCat("Retrying for up to ", HumanDuration(until - absl::Now()),
                                     ": ", Printable(ToStd(share.status().message()))));
  while (!share.ok() && IsRetryable(share.status()) && absl::Now() < until &&
         SleepUnlessInterrupted(kPause)) {
    share = client.Share(arguments.file, arguments.target, id, ttl, IgnoreProgress);
  }
  return share;
}

// Waits until the file is delivered, or can no longer be delivered, or until `until`.
absl::StatusOr<v1::Share> WaitForDelivery(ShareClient& client, v1::Share share, absl::Time until) {
  const v1::ShareKey key = share.file().key();
  while (share.state() == v1::SHARE_STATE_IN_TRANSIT && absl::Now() < until &&
         SleepUnlessInterrupted(kPause)) {
    auto now = client.Get(key);
    if (now.ok()) {
      share = *std::move(now);
    } else if (!IsRetryable(now.status())) {
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
  const auto share = UploadWithRetry(console, *client, arguments, ttl, until);
  if (Interrupted()) return kExitInterrupted;
  if (!share.ok()) return share.status();
  ASSIGN_OR_RETURN(const auto end, WaitForDelivery(*client, *share, until));
  return ReportOutcome(console, line, end);
}

absl::StatusOr<int> List(Console& console, const CommandLine& line,
                         const ShareArguments& arguments) {
  if (IsOperatorRequest(arguments)) {
    const auto fleet = OpenFleet(line);
    return fleet.ok() ? ListFleetShares(console, line, **fleet, arguments.relay) : fleet.status();
  }
  ASSIGN_OR_RETURN(const auto client,
                   OpenNode(arguments, "list the files at the relays: muster shared list --all"));
  ASSIGN_OR_RETURN(const auto shares, client->List());
  if (line.json) {
    Json json = Json::array();
    for (const v1::Share& share : shares) json.push_back(ToJson(share));
    console.out << Dump(json);
    return kExitOk;
  }
  Table table({{"FROM"}, {"TO"}, {"ID"}, {"SIZE", Table::Align::kRight}, {"EXPIRES"}, {"STATE"}});
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
  const absl::Status fetched = client->Fetch(key, arguments.output, IgnoreProgress);
  if (Interrupted()) return kExitInterrupted;
  if (!fetched.ok()) return fetched;
  PrintMessage(console,
               absl::StrCat("The file of ", key.source(), " is saved as ", arguments.output, "."));
  return kExitOk;
}

absl::StatusOr<int> Remove(Console& console, const CommandLine& line,
                           const ShareArguments& arguments) {
  absl::Status removed;
  if (IsOperatorRequest(arguments)) {
    ASSIGN_OR_RETURN(const auto key, KeyOf("", arguments));
    const auto fleet = OpenFleet(line);
    removed = fleet.ok() ? (*fleet)->Remove(key, arguments.relay) : fleet.status();
  } else {
    ASSIGN_OR_RETURN(const auto client, OpenNode(arguments, kGiveBoth));
    const auto key = KeyOf(client->node(), arguments);
    removed = key.ok() ? client->Remove(*key) : key.status();
  }
  if (!removed.ok()) return removed;
  PrintMessage(console, absl::StrCat(arguments.id, " is removed."));
  return kExitOk;
}

absl::StatusOr<v1::Share> GetShare(const CommandLine& line, const ShareArguments& arguments) {
  if (IsOperatorRequest(arguments)) {
    ASSIGN_OR_RETURN(const auto key, KeyOf("", arguments));
    ASSIGN_OR_RETURN(const auto fleet, OpenFleet(line));
    return fleet->Get(key, arguments.relay);
  }
  ASSIGN_OR_RETURN(const auto client, OpenNode(arguments, kGiveBoth));
  ASSIGN_OR_RETURN(const auto key, KeyOf(client->node(), arguments));
  return client->Get(key);
}

absl::StatusOr<int> Show(Console& console, const CommandLine& line,
                         const ShareArguments& arguments) {
  ASSIGN_OR_RETURN(const auto share, GetShare(line, arguments));
  return ReportOutcome(console, line, share);
}

using Handler = absl::StatusOr<int> (*)(Console&, const CommandLine&, const ShareArguments&);

CLI::App& AddCommandWithArguments(CommandLine& line, CLI::App& parent, const CommandText& text,
                                  const std::shared_ptr<ShareArguments>& arguments,
                                  Handler handler) {
  CLI::App& command = AddCommand(parent, text);
  SetAction(line, command, [&line, arguments, handler](Console& console) {
    return handler(console, line, *arguments);
  });
  return command;
}

void AddKeyOptions(CLI::App& command, ShareArguments& arguments, bool both) {
  command.add_option("--from", arguments.source, "The node that shared the file")
      ->required(!both)
      ->type_name("NODE");
  if (both) {
    command.add_option("--to", arguments.target, "The node with which it was shared")
        ->type_name("NODE");
  }
  command.add_option("--id", arguments.id, "The id of the file")->required()->type_name("ID");
  AddNodeFolderOption(command, arguments.folder);
}

void AddRelayOption(CLI::App& command, ShareArguments& arguments) {
  command
      .add_option("--relay", arguments.relay,
                  "For operators: the relay to ask (default: the relays of both nodes)")
      ->type_name("RELAY");
}

void AddShare(CommandLine& line, const std::shared_ptr<ShareArguments>& arguments) {
  CLI::App& command = AddCommandWithArguments(
      line, line.app,
      {.name = "share",
       .summary = "On a node: share a file with another node",
       .details = "The file is signed here and sent through the relays to the relay of the other "
                  "node. Bytes that a relay already has are not sent again.\n"
                  "If a relay is unreachable, the relay before it stores the file and sends it "
                  "later. The exit code is then 0, and `muster shared show` shows the outcome.",
       .example = "muster share report.csv --to n2\n"
                  "muster share report.csv --to n2 --id today.csv --ttl 24h"},
      arguments, ShareFile);
  command.add_option("FILE", arguments->file, "The file")->required()->type_name(kFileValue);
  command.add_option("--to", arguments->target, "The node that may read the file")
      ->required()
      ->type_name("NODE");
  command.add_option("--id", arguments->id, "The id of the shared file (default: the file name)")
      ->type_name("ID");
  command
      .add_option("--ttl", arguments->ttl,
                  "The time until the file expires (default: it does not expire)")
      ->type_name("DURATION");
  command
      .add_option("--wait", arguments->wait,
                  "How long to wait for the delivery and for an unreachable relay (default: 10s)")
      ->type_name("DURATION");
  AddNodeFolderOption(command, arguments->folder);
  AddJsonOption(line, command);
}

}  // namespace

void AddShareCommands(CommandLine& line) {
  const auto arguments = std::make_shared<ShareArguments>();
  AddShare(line, arguments);
  CLI::App& group = AddCommand(line.app, {.name = "shared",
                                          .summary = "List, get, show and remove shared files",
                                          .example = "muster shared list"});
  group.require_subcommand(1);
  CLI::App& list = AddCommandWithArguments(
      line, group,
      {.name = "list",
       .summary = "List the files shared with this node and by it",
       .details = "With --all or --relay, for operators: the files at each relay, their times, "
                  "and the used quota.",
       .example = "muster shared list\n"
                  "muster shared list --all"},
      arguments, List);
  list.add_flag("--all", arguments->all, "For operators: the files at every relay");
  list.add_option("--relay", arguments->relay, "For operators: the files at this relay")
      ->type_name("RELAY");
  AddNodeFolderOption(list, arguments->folder);
  AddJsonOption(line, list);
  AddContextOption(line, list);
  CLI::App& get = AddCommandWithArguments(
      line, group,
      {.name = "get",
       .summary = "Get a file that another node shared with this node",
       .details = "The file appears only when it is complete and its signature is verified. A "
                  "partial download in FILE.part is resumed.",
       .example = "muster shared get --from n1 --id report.csv -o report.csv"},
      arguments, Get);
  AddKeyOptions(get, *arguments, /*both=*/false);
  get.add_option("-o,--output", arguments->output, "The file to write")
      ->required()
      ->type_name(kFileValue);
  CLI::App& remove = AddCommandWithArguments(
      line, group,
      {.name = "remove",
       .summary = "Remove a shared file from the relays",
       .details = "On a node, give --from or --to. Operators give both; the audit log records the "
                  "removal.",
       .example = "muster shared remove --from n1 --id report.csv\n"
                  "muster shared remove --to n2 --id report.csv\n"
                  "muster shared remove --from n1 --to n2 --id report.csv"},
      arguments, Remove);
  AddKeyOptions(remove, *arguments, /*both=*/true);
  AddRelayOption(remove, *arguments);
  AddContextOption(line, remove);
  CLI::App& show = AddCommandWithArguments(
      line, group,
      {.name = "show",
       .summary = "Show the state of a shared file",
       .details = "The exit code is 0 if the file is delivered or in transit, and 1 if it was "
                  "refused, has expired or was removed. On a node, give --from or --to. Operators "
                  "give both.",
       .example = "muster shared show --to n2 --id report.csv"},
      arguments, Show);
  AddKeyOptions(show, *arguments, /*both=*/true);
  AddRelayOption(show, *arguments);
  AddJsonOption(line, show);
  AddContextOption(line, show);
}

}  // namespace muster::cli

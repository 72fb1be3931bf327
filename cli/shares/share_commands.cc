#include "cli/shares/share_commands.h"

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/exit_code.h"
#include "cli/format.h"
#include "cli/interrupt.h"
#include "cli/json_view.h"
#include "cli/shares/share_client.h"
#include "cli/table.h"
#include "services/agent/agent_config.h"
#include "services/common/base/error.h"
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
};

void Quiet(int64_t, int64_t) {}

std::string StateWord(v1::ShareState state) {
  switch (state) {
    case v1::SHARE_STATE_ON_THE_WAY:
      return "on the way";
    case v1::SHARE_STATE_DELIVERED:
      return "delivered";
    case v1::SHARE_STATE_REFUSED:
      return "refused";
    case v1::SHARE_STATE_EXPIRED:
      return "expired";
    case v1::SHARE_STATE_REMOVED:
      return "removed";
    default:
      return "unknown";
  }
}

Json ToJson(const v1::Share& share) {
  const v1::SharedFile& file = share.file();
  Json json;
  json["source"] = file.key().source();
  json["target"] = file.key().target();
  json["id"] = file.key().id();
  json["size"] = file.size();
  json["sha256"] = Hex(file.sha256());
  json["expire_time"] = file.has_expire_time() ? Rfc3339(ToTime(file.expire_time())) : "never";
  json["state"] = StateWord(share.state());
  json["reason"] = share.reason();
  json["relay"] = share.relay();
  json["change_time"] = Rfc3339(ToTime(share.change_time()));
  return json;
}

std::string Expiry(const v1::SharedFile& file) {
  return file.has_expire_time()
             ? HumanTime(ToTime(file.expire_time()), absl::Now(), absl::LocalTimeZone())
             : "never";
}

absl::StatusOr<std::unique_ptr<ShareClient>> OpenClient(const ShareArguments& arguments) {
  return ShareClient::Open(arguments.folder.empty() ? DefaultNodeFolder(::getenv)
                                                    : arguments.folder);
}

// What the user named, seen from the node whose folder it is: shared by it, or with it.
absl::StatusOr<v1::ShareKey> KeyOf(const ShareClient& client, const ShareArguments& arguments) {
  if (arguments.source.empty() == arguments.target.empty()) {
    return UsageError("say which file: exactly one of --from and --to is needed",
                      "--from NODE for one that was shared with this node, --to NODE for one that "
                      "this node shared.");
  }
  v1::ShareKey key;
  key.set_source(arguments.source.empty() ? client.node() : arguments.source);
  key.set_target(arguments.target.empty() ? client.node() : arguments.target);
  key.set_id(arguments.id);
  if (absl::Status s = ValidateShareKey(key); !s.ok()) return s;
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

// Until it has arrived, or will not, or `wait` is over.
absl::StatusOr<v1::Share> Await(ShareClient& client, v1::Share share, absl::Duration wait) {
  const absl::Time until = absl::Now() + wait;
  const v1::ShareKey key = share.file().key();
  while (share.state() == v1::SHARE_STATE_ON_THE_WAY && absl::Now() < until &&
         SleepUnlessInterrupted(kPause)) {
    auto now = client.Get(key);
    if (now.ok()) {
      share = *std::move(now);
    } else if (!absl::IsUnavailable(now.status())) {
      return now.status();
    }
  }
  return share;
}

absl::StatusOr<int> Tell(Console& console, const CommandLine& line, const v1::Share& share) {
  const v1::ShareKey& key = share.file().key();
  if (line.json) console.out << Dump(ToJson(share));
  const std::string file = absl::StrCat(key.id(), " from ", key.source(), " for ", key.target());
  switch (share.state()) {
    case v1::SHARE_STATE_DELIVERED:
      Say(console, absl::StrCat(file, " lies at relay ", share.relay(),
                                ", expires: ", Expiry(share.file()), "."));
      return kExitOk;
    case v1::SHARE_STATE_ON_THE_WAY:
      Say(console, absl::StrCat(file, " is kept by relay ", share.relay(),
                                " and is passed on as soon as that can be.\nAsk again: muster "
                                "shared outcome --to ",
                                key.target(), " --id ", key.id()));
      return kExitOk;
    default:
      break;
  }
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   share.state() == v1::SHARE_STATE_REFUSED   ? "SHARE_REFUSED"
                   : share.state() == v1::SHARE_STATE_EXPIRED ? "SHARE_EXPIRED"
                                                              : "SHARE_REMOVED",
                   absl::StrCat(file, ": ", StateWord(share.state()), " at relay ", share.relay(),
                                share.reason().empty() ? "" : absl::StrCat(": ", share.reason())),
                   "Share it again once its cause is dealt with.");
}

absl::StatusOr<int> ShareFile(Console& console, const CommandLine& line,
                              const ShareArguments& arguments) {
  CatchInterrupts();
  const auto ttl = DurationOption("--ttl", arguments.ttl, absl::InfiniteDuration());
  if (!ttl.ok()) return ttl.status();
  const auto wait = DurationOption("--wait", arguments.wait, absl::Seconds(10));
  if (!wait.ok()) return wait.status();
  const auto client = OpenClient(arguments);
  if (!client.ok()) return client.status();
  const std::string id = arguments.id.empty()
                             ? std::filesystem::path(arguments.file).filename().string()
                             : arguments.id;
  const auto share = (*client)->Share(arguments.file, arguments.target, id, *ttl, Quiet);
  if (Interrupted()) return kExitInterrupted;
  if (!share.ok()) return share.status();
  const auto end = Await(**client, *share, *wait);
  if (!end.ok()) return end.status();
  return Tell(console, line, *end);
}

absl::StatusOr<int> List(Console& console, const CommandLine& line,
                         const ShareArguments& arguments) {
  const auto client = OpenClient(arguments);
  if (!client.ok()) return client.status();
  const auto shares = (*client)->List();
  if (!shares.ok()) return shares.status();
  if (line.json) {
    Json json = Json::array();
    for (const v1::Share& share : *shares) json.push_back(ToJson(share));
    console.out << Dump(json);
    return kExitOk;
  }
  Table table({{"FROM"}, {"FOR"}, {"ID"}, {"SIZE", Table::Align::kRight}, {"EXPIRES"}, {"STATE"}});
  for (const v1::Share& share : *shares) {
    const v1::SharedFile& file = share.file();
    table.AddRow({file.key().source(), file.key().target(), file.key().id(), HumanSize(file.size()),
                  Expiry(file), StateWord(share.state())});
  }
  console.out << table.Render(console.width);
  return kExitOk;
}

absl::StatusOr<int> Get(Console& console, const CommandLine&, const ShareArguments& arguments) {
  CatchInterrupts();
  const auto client = OpenClient(arguments);
  if (!client.ok()) return client.status();
  const auto key = KeyOf(**client, arguments);
  if (!key.ok()) return key.status();
  const absl::Status fetched = (*client)->Fetch(*key, arguments.output, Quiet);
  if (Interrupted()) return kExitInterrupted;
  if (!fetched.ok()) return fetched;
  Say(console, absl::StrCat("What ", key->source(), " signed is in ", arguments.output, "."));
  return kExitOk;
}

absl::StatusOr<int> Remove(Console& console, const CommandLine&, const ShareArguments& arguments) {
  const auto client = OpenClient(arguments);
  if (!client.ok()) return client.status();
  const auto key = KeyOf(**client, arguments);
  if (!key.ok()) return key.status();
  if (absl::Status s = (*client)->Remove(*key); !s.ok()) return s;
  Say(console, absl::StrCat(key->id(), " is removed."));
  return kExitOk;
}

absl::StatusOr<int> Outcome(Console& console, const CommandLine& line,
                            const ShareArguments& arguments) {
  const auto client = OpenClient(arguments);
  if (!client.ok()) return client.status();
  const auto key = KeyOf(**client, arguments);
  if (!key.ok()) return key.status();
  const auto share = (*client)->Get(*key);
  if (!share.ok()) return share.status();
  return Tell(console, line, *share);
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
  command.add_option("--from", arguments.source, "The node that shared it with this one")
      ->type_name("NODE");
  if (both) {
    command.add_option("--to", arguments.target, "The node that this one shared it with")
        ->type_name("NODE");
  }
  command.add_option("--id", arguments.id, "Its id")->required()->type_name("ID");
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
      .add_option("--wait", arguments->wait, "How long to wait until it has arrived (default: 10s)")
      ->type_name("DURATION");
  AddJsonOption(line, command);
}

}  // namespace

void AddShareCommands(CommandLine& line) {
  const auto arguments = std::make_shared<ShareArguments>();
  AddShare(line, arguments);
  CLI::App& group = AddCommand(line.app, {.name = "shared",
                                          .summary = "On a node: files from and for other nodes",
                                          .example = "muster shared list"});
  group.require_subcommand(1);
  CLI::App& list = AddOne(line, group,
                          {.name = "list",
                           .summary = "List what is here for this node, and what it shared",
                           .example = "muster shared list"},
                          arguments, List);
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
                             .example = "muster shared remove --from n1 --id report.csv\n"
                                        "muster shared remove --to n2 --id report.csv"},
                            arguments, Remove);
  AddKey(remove, *arguments, /*both=*/true);
  CLI::App& outcome = AddOne(line, group,
                             {.name = "outcome",
                              .summary = "Show whether a shared file has arrived",
                              .details = "Exit code 0 if it has, or is on its way; 1 if it was "
                                         "refused, has expired or was removed.",
                              .example = "muster shared outcome --to n2 --id report.csv"},
                             arguments, Outcome);
  AddKey(outcome, *arguments, /*both=*/true);
  AddJsonOption(line, outcome);
}

}  // namespace muster::cli

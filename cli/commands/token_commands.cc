#include "cli/commands/token_commands.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "cli/commands/labels.h"
#include "cli/commands/secret_output.h"
#include "cli/exit_code.h"
#include "cli/output/format.h"
#include "cli/output/json_view.h"
#include "cli/output/table.h"
#include "cli/rpc/id_prefix.h"
#include "cli/rpc/session.h"
#include "services/common/base/error.h"
#include "services/common/base/random_id.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/joining.h"
#include "services/common/identity/identity.h"
#include "services/common/identity/join_token.h"

namespace muster::cli {
namespace {

constexpr size_t kTokenIdBytes = 16;

struct CreateArguments {
  std::string node;
  std::string relay;
  int count = 0;
  std::vector<std::string> parents;
  std::string ttl;
  std::vector<std::string> labels;
  std::string output;
};

// Returns the command with which a machine joins.
std::string JoinCommand(const v1::JoinToken& token) {
  if (token.relay()) {
    return "muster relay join --token-file FILE --dir FOLDER --advertise HOST:PORT";
  }
  return absl::StrCat("muster node join --token-file FILE",
                      token.node().empty() ? " --node NAME" : "");
}

std::string TokenScope(const v1::JoinToken& token) {
  if (token.relay()) return absl::StrCat("relay ", token.node());
  return token.node().empty() ? absl::StrCat(token.count(), token.count() == 1 ? " node" : " nodes")
                              : token.node();
}

absl::StatusOr<v1::CreateJoinTokenRequest> MakeRequest(const CreateArguments& arguments,
                                                       const PrivateKey& key) {
  const int kinds = (arguments.node.empty() ? 0 : 1) + (arguments.relay.empty() ? 0 : 1) +
                    (arguments.count == 0 ? 0 : 1);
  if (kinds != 1) {
    return UsageError("exactly one of --node, --count and --relay is required",
                      "See the example in `muster token create --help`.");
  }
  v1::CreateJoinTokenRequest request;
  request.set_id(RandomHex(kTokenIdBytes));
  ASSIGN_OR_RETURN(const auto pem, key.public_key().ToPem());
  request.set_public_key_pem(pem);
  request.set_node(arguments.relay.empty() ? arguments.node : arguments.relay);
  request.set_relay(!arguments.relay.empty());
  request.mutable_parents()->Assign(arguments.parents.begin(), arguments.parents.end());
  request.set_count(arguments.count);
  if (!arguments.ttl.empty()) {
    const auto ttl = DurationArgument(arguments.ttl);
    if (!ttl.ok()) return AsUsageError(ttl.status(), "--ttl");
    request.mutable_ttl()->set_seconds(absl::ToInt64Seconds(*ttl));
  }
  RETURN_IF_ERROR(AddLabels(arguments.labels, request.mutable_labels()));
  return request;
}

// Creates a token. Its key is generated here; the fleet receives only the public key.
absl::StatusOr<int> CreateToken(Console& console, const CommandLine& line,
                                const CreateArguments& arguments) {
  ASSIGN_OR_RETURN(const auto key, PrivateKey::Generate());
  ASSIGN_OR_RETURN(const auto request, MakeRequest(arguments, key));
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  RETURN_IF_ERROR(CheckNewSecretOutput("--output", arguments.output));
  Client client(context);
  const auto created = client.CreateJoinToken(request);
  if (!created.ok()) return WithTimeoutOption(created.status());

  JoinToken token;
  token.fleet = context.fleet;
  token.id = created->token().id();
  token.node = created->token().node();
  token.relay = created->token().relay();
  token.expires = FromProto(created->token().expire_time());
  token.join_targets.assign(created->join_targets().begin(), created->join_targets().end());
  token.fleet_ca_pem = created->fleet_ca_pem();
  token.command_ca_pem = created->command_ca_pem();
  ASSIGN_OR_RETURN(token.private_key_pem, key.ToPkcs8Pem());
  RETURN_IF_ERROR(WriteSecretOutput(console, arguments.output, JoinTokenToJson(token).view()));
  const bool to_stdout = arguments.output.empty() || arguments.output == "-";
  PrintMessage(console,
               absl::StrCat("Join token ", token.id, " for ", TokenScope(created->token()),
                            ", until ", HumanTime(token.expires, absl::Now()), ".\nThe holder of ",
                            to_stdout ? "this output" : arguments.output, " can join. Run on ",
                            token.node.empty() ? "each" : "the",
                            " machine: ", JoinCommand(created->token()), "."));
  return kExitOk;
}

std::string JoinedText(const v1::JoinToken& token) {
  if (token.joined().empty()) return "-";
  const int more = token.joined_count() - token.joined_size();
  return absl::StrCat(absl::StrJoin(token.joined(), ", "),
                      more == 0 ? "" : absl::StrCat(" and ", more, " more"));
}

std::string TokenState(const v1::JoinToken& token) {
  if (token.revoked()) return "revoked";
  if (token.joined_count() >= token.count()) return "used";
  return FromProto(token.expire_time()) <= absl::Now() ? "expired" : "open";
}

absl::StatusOr<int> ListTokens(Console& console, const CommandLine& line) {
  ASSIGN_OR_RETURN(const auto client, Connect(line.context_file));
  ASSIGN_OR_RETURN(const auto list, client->ListJoinTokens());
  if (line.json) {
    Json json = Json::array();
    for (const v1::JoinToken& token : list.tokens()) json.push_back(ToJson(token));
    console.out << Dump(json);
    return kExitOk;
  }
  if (list.tokens().empty()) {
    PrintMessage(console,
                 "There are no join tokens. Create one: muster token create --node NAME -o FILE");
    return kExitOk;
  }
  Table table({{"TOKEN"}, {"FOR"}, {"STATE"}, {"EXPIRES"}, {"JOINED"}});
  for (const v1::JoinToken& token : list.tokens()) {
    table.AddRow({token.id(), TokenScope(token), TokenState(token),
                  HumanTime(FromProto(token.expire_time()), absl::Now()), JoinedText(token)});
  }
  console.out << table.Render(console.width);
  return kExitOk;
}

// Returns the id of the token that `text` names by its id or a unique prefix of it.
absl::StatusOr<std::string> ResolveToken(Client& client, const std::string& text) {
  return ResolveId({"join token", "join tokens", "muster token list", 2 * kTokenIdBytes}, text,
                   FromService(errors::TokenNotFound(text), "the list of join tokens"),
                   [&client](const std::string&) -> absl::StatusOr<IdPage> {
                     ASSIGN_OR_RETURN(const auto list, client.ListJoinTokens());
                     IdPage page;
                     for (const v1::JoinToken& token : list.tokens())
                       page.ids.push_back(token.id());
                     return page;
                   });
}

absl::StatusOr<int> RevokeToken(Console& console, const CommandLine& line,
                                const std::string& text) {
  ASSIGN_OR_RETURN(const auto client, Connect(line.context_file));
  ASSIGN_OR_RETURN(const auto id, ResolveToken(*client, text));
  ASSIGN_OR_RETURN(const auto token, client->RevokeJoinToken(id));
  if (line.json) console.out << Dump(ToJson(token));
  PrintMessage(
      console,
      absl::StrCat("Join token ", id, " is revoked. ",
                   token.joined().empty()
                       ? "No machine has joined with it."
                       : absl::StrCat("Machines that have joined with it are not removed: ",
                                      JoinedText(token), ".")));
  return kExitOk;
}

void AddCreate(CommandLine& line, CLI::App& group) {
  CLI::App& command = AddCommand(
      group,
      {.name = "create",
       .summary = "Create a join token and print it",
       .details = "The token is a secret: -o writes it with mode 0600.\n"
                  "A machine that joins with it attaches to the relays that --parent names, in "
                  "this order, or to the root relay if none of them is reachable.",
       .example = "muster token create --node n1 -o n1.token\n"
                  "muster token create --count 20 --ttl 1h --label rack=b1 -o rack.token\n"
                  "muster token create --relay r1 -o r1.token\n"
                  "muster token create --node n2 --parent r1,r2 -o n2.token"});
  const auto arguments = std::make_shared<CreateArguments>();
  command.add_option("--node", arguments->node, "The name of the node that may join")
      ->type_name("NAME");
  CLI::Option* count =
      command.add_option("--count", arguments->count, "The number of new nodes that may join");
  count->type_name("N");
  AllowRange(*count, 1, 10'000);
  command.add_option("--relay", arguments->relay, "The name of the relay that may join")
      ->type_name("NAME");
  command.add_option("--parent", arguments->parents, "Joined relays to attach to")
      ->delimiter(',')
      ->type_name("RELAY,...");
  command
      .add_option("--ttl", arguments->ttl,
                  "The time until the token expires (default: 15m, from 1m to 24h)")
      ->type_name("DURATION");
  command.add_option("--label", arguments->labels, "A label of the nodes that join")
      ->type_name("KEY=VALUE");
  command.add_option("-o,--output", arguments->output, "The file to write (default: stdout)")
      ->type_name(kFileValue);
  AddContextOption(line, command);
  SetAction(line, command, [&line, arguments](Console& console) {
    return CreateToken(console, line, *arguments);
  });
}

}  // namespace

void AddTokenCommands(CommandLine& line) {
  CLI::App& group = AddCommand(line.app, {.name = "token",
                                          .summary = "Create, list and revoke join tokens",
                                          .example = "muster token create --node n1 -o n1.token"});
  group.require_subcommand(1);
  AddCreate(line, group);
  CLI::App& list =
      AddCommand(group, {.name = "list",
                         .summary = "List the join tokens and the machines that joined",
                         .example = "muster token list"});
  AddJsonOption(line, list);
  AddContextOption(line, list);
  SetAction(line, list, [&line](Console& console) { return ListTokens(console, line); });
  CLI::App& revoke =
      AddCommand(group, {.name = "revoke",
                         .summary = "Revoke a join token",
                         .details = "Machines that joined with it stay in the fleet.",
                         .example = "muster token revoke 0123"});
  const auto id = std::make_shared<std::string>();
  revoke.add_option("TOKEN", *id, "The id of the token, or a unique prefix of it")
      ->required()
      ->type_name("");
  AddJsonOption(line, revoke);
  AddContextOption(line, revoke);
  SetAction(line, revoke,
            [&line, id](Console& console) { return RevokeToken(console, line, *id); });
}

}  // namespace muster::cli

#include "cli/commands/node_commands.h"

#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "cli/commands/labels.h"
#include "cli/commands/token_file.h"
#include "cli/exit_code.h"
#include "cli/output/format.h"
#include "cli/output/json_view.h"
#include "cli/output/status_json.h"
#include "cli/output/table.h"
#include "cli/rpc/attached.h"
#include "cli/rpc/session.h"
#include "services/agent/agent_config.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/joining/join_fleet.h"

namespace muster::cli {
namespace {

constexpr int kPage = 1'000;

struct NodeArguments {
  std::string node;
  std::vector<std::string> labels;
  std::vector<std::string> remove;
  std::string reason;
};

struct JoinArguments {
  std::string token_file;
  std::string node;
  std::string folder;
};

std::string Time(const google::protobuf::Timestamp& time) {
  return HumanTime(FromProto(time), absl::Now(), absl::LocalTimeZone());
}

// Presence by node, of those that the status service knows; nothing if it cannot be asked.
std::optional<std::map<std::string, v1::Node>> Presences(Client& client) {
  std::map<std::string, v1::Node> nodes;
  v1::ListNodesRequest request;
  request.set_page_size(kPage);
  do {
    const auto page = client.ListNodes(request);
    if (!page.ok()) return std::nullopt;
    for (const v1::Node& node : page->nodes()) nodes[node.node()] = node;
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return nodes;
}

absl::StatusOr<std::vector<v1::EnrolledNode>> FetchNodes(Client& client,
                                                         v1::ListEnrolledNodesRequest request) {
  std::vector<v1::EnrolledNode> nodes;
  request.set_page_size(kPage);
  do {
    ASSIGN_OR_RETURN(auto page, client.ListEnrolledNodes(request));
    nodes.insert(nodes.end(), std::make_move_iterator(page.mutable_nodes()->begin()),
                 std::make_move_iterator(page.mutable_nodes()->end()));
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return nodes;
}

std::string KindOf(const v1::EnrolledNode& node) { return node.is_relay() ? "relay" : "node"; }

// The relays it was told to hang below; the one at the centre comes last, always.
std::string ParentsOf(const v1::EnrolledNode& node) {
  return node.parents().empty() ? "centre" : absl::StrJoin(node.parents(), ", ");
}

// What its presence is, in a word.
std::string PresenceOf(const v1::EnrolledNode& node,
                       const std::optional<std::map<std::string, v1::Node>>& presences) {
  if (node.revoked()) return "revoked";
  if (node.is_relay()) return "-";  // it beats for no run
  if (!presences) return "?";
  const auto found = presences->find(node.name());
  return found == presences->end() ? "never seen" : PresenceWord(found->second.presence());
}

// The relay that it hangs below now; "-" if below none.
std::string RelayOf(const v1::EnrolledNode& node, const std::optional<AttachedMap>& attached) {
  if (!attached) return "?";
  const auto found = attached->find(node.name());
  return found == attached->end() || !found->second.attached() ? "-" : found->second.relay();
}

absl::StatusOr<int> ListNodes(Console& console, const CommandLine& line,
                              const NodeArguments& arguments) {
  v1::ListEnrolledNodesRequest request;
  RETURN_IF_ERROR(AddLabels(arguments.labels, request.mutable_labels()));
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  Client client(context);
  ASSIGN_OR_RETURN(const auto nodes, FetchNodes(client, std::move(request)));
  const auto presences = Presences(client);
  const auto attached = FetchAttached(context);
  if (line.json) {
    Json json = Json::array();
    for (const v1::EnrolledNode& node : nodes) {
      json.push_back(ToJson(node));
      json.back()["presence"] = PresenceOf(node, presences);
      if (!attached) continue;
      const std::string relay = RelayOf(node, attached);
      json.back()["attached"] = relay != "-";
      json.back()["relay"] = relay == "-" ? "" : relay;
    }
    console.out << Dump(json);
    return kExitOk;
  }
  Table table({{"NODE"},
               {"KIND"},
               {"PRESENCE"},
               {"BELOW"},
               {"JOINED"},
               {"CERTIFICATE ENDS"},
               {"PARENTS"},
               {"LABELS"}});
  for (const v1::EnrolledNode& node : nodes) {
    table.AddRow({node.name(), KindOf(node), PresenceOf(node, presences), RelayOf(node, attached),
                  Time(node.join_time()), Time(node.expire_time()), ParentsOf(node),
                  LabelText(node.labels())});
  }
  console.out << table.Render(console.width);
  if (!presences) Say(console, "The status service does not answer: no presence is known.");
  if (!attached) Say(console, "The relay does not answer: who hangs where is not known.");
  return kExitOk;
}

absl::StatusOr<int> ShowNode(Console& console, const CommandLine& line,
                             const NodeArguments& arguments) {
  ASSIGN_OR_RETURN(const auto client, Connect(line.context_file));
  ASSIGN_OR_RETURN(const auto node, client->GetEnrolledNode(arguments.node));
  const auto presence = client->GetNode(arguments.node);
  if (line.json) {
    Json json = ToJson(node);
    if (presence.ok()) json["presence"] = PresenceWord(presence->presence());
    console.out << Dump(json);
    return kExitOk;
  }
  Table table({{"NODE"}, {node.name()}});
  table.AddRow({"kind", KindOf(node)});
  table.AddRow({"identity", node.uri()});
  table.AddRow({"labels", LabelText(node.labels())});
  table.AddRow({"joined", absl::StrCat(Time(node.join_time()), ", token ", node.join_token())});
  table.AddRow({"certificate ends", Time(node.expire_time())});
  table.AddRow({"parents", ParentsOf(node)});
  if (node.is_relay()) {
    table.AddRow({"reached at", absl::StrJoin(node.relay_targets(), ", ")});
    if (!node.join_targets().empty()) {
      table.AddRow({"joined through at", absl::StrJoin(node.join_targets(), ", ")});
    }
  }
  if (node.revoked()) {
    table.AddRow(
        {"revoked", absl::StrCat(Time(node.revoke_time()), " by ", node.revoked_by(),
                                 node.revoke_reason().empty() ? "" : ": ", node.revoke_reason())});
  }
  if (presence.ok()) {
    table.AddRow({"presence", absl::StrCat(PresenceWord(presence->presence()), " since ",
                                           Time(presence->presence_since()))});
    for (const v1::NodeEvent& event : presence->events()) {
      table.AddRow({Time(event.time()), event.detail()});
    }
  }
  console.out << table.Render(console.width);
  return kExitOk;
}

absl::StatusOr<int> LabelNode(Console& console, const CommandLine& line,
                              const NodeArguments& arguments) {
  v1::LabelNodeRequest request;
  request.set_node(arguments.node);
  RETURN_IF_ERROR(AddLabels(arguments.labels, request.mutable_set()));
  request.mutable_remove()->Assign(arguments.remove.begin(), arguments.remove.end());
  if (request.set().empty() && request.remove().empty()) {
    return UsageError("no label was named", "Set one: muster node label n1 rack=b1.");
  }
  ASSIGN_OR_RETURN(const auto client, Connect(line.context_file));
  ASSIGN_OR_RETURN(const auto node, client->LabelNode(request));
  if (line.json) console.out << Dump(ToJson(node));
  Say(console,
      absl::StrCat("Node ", node.name(), " has the labels ", LabelText(node.labels()), "."));
  return kExitOk;
}

absl::StatusOr<int> RevokeNode(Console& console, const CommandLine& line,
                               const NodeArguments& arguments) {
  ASSIGN_OR_RETURN(const auto client, Connect(line.context_file));
  v1::RevokeNodeRequest request;
  request.set_node(arguments.node);
  request.set_reason(arguments.reason);
  ASSIGN_OR_RETURN(const auto node, client->RevokeNode(request));
  if (line.json) console.out << Dump(ToJson(node));
  Say(console, absl::StrCat("Node ", node.name(),
                            " is revoked. Its name is not given again before it is removed."));
  return kExitOk;
}

absl::StatusOr<int> RemoveNode(Console& console, const CommandLine& line,
                               const NodeArguments& arguments) {
  ASSIGN_OR_RETURN(const auto client, Connect(line.context_file));
  RETURN_IF_ERROR(client->RemoveNode(arguments.node));
  Say(console, absl::StrCat("Node ", arguments.node,
                            " is out of the fleet; a machine may join under its name."));
  return kExitOk;
}

absl::StatusOr<int> Join(Console& console, const JoinArguments& arguments) {
  ASSIGN_OR_RETURN(const auto token, ReadTokenFile(arguments.token_file));
  const std::string node = !arguments.node.empty() ? arguments.node : token.node;
  if (node.empty()) {
    return UsageError("the token is for any node, and no name was given",
                      "Name the node: --node NAME, such as --node $(hostname).");
  }
  const std::string folder =
      arguments.folder.empty() ? DefaultNodeFolder(::getenv) : arguments.folder;
  const auto joined = JoinFleet(token, node, folder);
  if (!joined.ok()) return JoinFailure(joined.status(), "node " + node);
  Say(console,
      absl::StrCat("This machine is node ", joined->name, " of fleet ", token.fleet,
                   ".\nIts identity is in ", folder, ", valid until ",
                   HumanTime(joined->certificate_ends, absl::Now(), absl::LocalTimeZone()), "."));
  return kExitOk;
}

void AddJoin(CommandLine& line, CLI::App& group) {
  CLI::App& command = AddCommand(
      group, {.name = "join",
              .summary = "On a machine: join the fleet with a token",
              .details = "The node's key is made here and never sent. An answer that was lost is "
                         "asked for again\nby the same command, within the token's time.",
              .example = "muster node join --token-file n1.token\n"
                         "ssh n1 muster node join --token-file - < n1.token"});
  const auto arguments = std::make_shared<JoinArguments>();
  command.add_option("--token-file", arguments->token_file, "The token's file; - for stdin")
      ->required()
      ->type_name(kFileValue);
  command.add_option("--node", arguments->node, "The name (default: the one in the token)")
      ->type_name("NAME");
  command
      .add_option(
          "--dir,--folder", arguments->folder,
          "Where the identity is kept (default: $MUSTER_HOME/node, for root /var/lib/muster-node)")
      ->type_name(kFolderValue);
  SetAction(line, command, [arguments](Console& console) { return Join(console, *arguments); });
}

using NodeAction = absl::StatusOr<int> (*)(Console&, const CommandLine&, const NodeArguments&);

// A command about one node.
CLI::App& AddNodeCommand(CommandLine& line, CLI::App& group, const CommandText& text,
                         const std::shared_ptr<NodeArguments>& arguments, NodeAction action) {
  CLI::App& command = AddCommand(group, text);
  command.add_option("NODE", arguments->node, "The node's name")->required()->type_name("");
  AddContextOption(line, command);
  SetAction(line, command, [&line, arguments, action](Console& console) {
    return action(console, line, *arguments);
  });
  return command;
}

void AddLabel(CommandLine& line, CLI::App& group) {
  const auto arguments = std::make_shared<NodeArguments>();
  CLI::App& command = AddNodeCommand(line, group,
                                     {.name = "label",
                                      .summary = "Set and remove labels of a node",
                                      .example = "muster node label n1 rack=b1 --remove zone"},
                                     arguments, LabelNode);
  command.add_option("LABEL", arguments->labels, "key=value, to set")->type_name("");
  command.add_option("--remove", arguments->remove, "A key to remove")->type_name("KEY");
  AddJsonOption(line, command);
}

void AddRevoke(CommandLine& line, CLI::App& group) {
  const auto arguments = std::make_shared<NodeArguments>();
  CLI::App& command = AddNodeCommand(
      line, group,
      {.name = "revoke",
       .summary = "Refuse a node from now on",
       .details = "Its streams end within seconds. It stays in the list until it is removed.",
       .example = "muster node revoke n1 --reason \"disk was stolen\""},
      arguments, RevokeNode);
  command.add_option("--reason", arguments->reason, "Kept with the node")->type_name("TEXT");
  AddJsonOption(line, command);
}

}  // namespace

void AddNodeCommands(CommandLine& line) {
  const auto listed = std::make_shared<NodeArguments>();
  CLI::App& list = AddCommand(line.app, {.name = "nodes",
                                         .summary = "List the nodes of the fleet",
                                         .example = "muster nodes\nmuster nodes --label rack=b1"});
  list.add_option("--label", listed->labels, "Only those with this label")->type_name("KEY=VALUE");
  AddJsonOption(line, list);
  AddContextOption(line, list);
  SetAction(line, list,
            [&line, listed](Console& console) { return ListNodes(console, line, *listed); });

  CLI::App& group = AddCommand(line.app, {.name = "node",
                                          .summary = "Join as a node; look after nodes",
                                          .example = "muster node join --token-file n1.token"});
  group.require_subcommand(1);
  AddJoin(line, group);
  CLI::App& show = AddNodeCommand(line, group,
                                  {.name = "show",
                                   .summary = "Show one node and what happened to it",
                                   .example = "muster node show n1"},
                                  std::make_shared<NodeArguments>(), ShowNode);
  AddJsonOption(line, show);
  AddLabel(line, group);
  AddRevoke(line, group);
  AddNodeCommand(line, group,
                 {.name = "remove",
                  .summary = "Take a node out of the fleet",
                  .details = "It is revoked, and its name is free again.",
                  .example = "muster node remove n1"},
                 std::make_shared<NodeArguments>(), RemoveNode);
}

}  // namespace muster::cli

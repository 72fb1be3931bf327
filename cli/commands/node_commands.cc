#include "cli/commands/node_commands.h"

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "cli/commands/labels.h"
#include "cli/commands/node_info_view.h"
#include "cli/commands/node_presence.h"
#include "cli/commands/token_file.h"
#include "cli/exit_code.h"
#include "cli/output/format.h"
#include "cli/output/json_view.h"
#include "cli/output/status_json.h"
#include "cli/output/table.h"
#include "cli/rpc/attached.h"
#include "cli/rpc/session.h"
#include "services/agent/agent_config.h"
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
  std::string link;
};

std::string FormatTime(const google::protobuf::Timestamp& time) {
  return HumanTime(FromProto(time), absl::Now());
}

// Returns the presence by node, or nothing if the status service does not answer.
std::optional<PresenceMap> FetchPresences(Client& client) {
  PresenceMap nodes;
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

std::string KindOf(const v1::EnrolledNode& node) { return node.is_relay() ? "relay" : "node"; }

void WarnOfMissingAnswers(Console& console, bool has_presence, bool has_attachments) {
  if (!has_presence) {
    PrintMessage(console, "The status service does not answer: the presence is unknown.");
  }
  if (!has_attachments) {
    PrintMessage(console, "The root relay does not answer: the attachments are unknown.");
  }
}

// Returns the configured parents. The root relay is always the last one.
std::string ParentsOf(const v1::EnrolledNode& node) {
  return node.parents().empty() ? "root" : absl::StrJoin(node.parents(), ", ");
}

void AddPresence(const v1::Node* node, Json* json) {
  const std::string presence = KnownPresence(node);
  (*json)["presence"] = presence;
  (*json)["presence_since"] =
      presence.empty() ? std::string() : Rfc3339(FromProto(node->presence_since()));
}

void AddDuplicate(const std::optional<bool>& duplicate, Json* json) {
  if (duplicate) (*json)["duplicate_agent"] = *duplicate;
}

Json EventJson(const v1::NodeEvent& event) {
  return {{"time", Rfc3339(FromProto(event.time()))},
          {"presence", PresenceWord(event.presence())},
          {"reason", ReasonWord(event.reason())},
          {"run", event.run()},
          {"plugin", event.plugin()},
          {"detail", event.detail()}};
}

absl::StatusOr<int> ListNodes(Console& console, const CommandLine& line,
                              const NodeArguments& arguments) {
  v1::ListEnrolledNodesRequest request;
  RETURN_IF_ERROR(AddLabels(arguments.labels, request.mutable_labels()));
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  Client client(context);
  ASSIGN_OR_RETURN(const auto nodes, client.ListEnrolledNodes(std::move(request)));
  const auto presences = FetchPresences(client);
  const auto attached = FetchAttached(context);
  if (line.json) {
    Json json = Json::array();
    for (const v1::EnrolledNode& node : nodes) {
      json.push_back(ToJson(node));
      if (attached) AddAttachment(node, attached, &json.back());
      if (presences) AddPresence(FindNode(*presences, node.name()), &json.back());
      AddDuplicate(HasDuplicateAgent(node, presences, attached), &json.back());
    }
    console.out << Dump(json);
    return kExitOk;
  }
  if (nodes.empty()) {
    PrintMessage(console, arguments.labels.empty()
                              ? "No node has joined. Create a token: muster token create --node "
                                "NAME -o FILE"
                              : "No node has these labels.");
    return kExitOk;
  }
  Table table({{"NODE"},
               {"KIND"},
               {"ATTACHED"},
               {.heading = "PRESENCE", .colored = true},
               {"JOINED"},
               {"CERTIFICATE EXPIRES"},
               {"PARENTS"},
               {"LABELS"}});
  std::vector<std::string> duplicates;
  for (const v1::EnrolledNode& node : nodes) {
    if (HasDuplicateAgent(node, presences, attached).value_or(false)) {
      duplicates.push_back(node.name());
    }
    table.AddRow({node.name(), KindOf(node), RelayOf(node, attached),
                  PresenceOf(node, presences, attached), FormatTime(node.join_time()),
                  FormatTime(node.expire_time()), ParentsOf(node), LabelText(node.labels())});
  }
  console.out << table.Render(console.width, console.out_has_color);
  WarnOfMissingAnswers(console, presences.has_value(), attached.has_value());
  WarnOfDuplicateAgents(console, duplicates);
  return kExitOk;
}

absl::StatusOr<int> ShowNode(Console& console, const CommandLine& line,
                             const NodeArguments& arguments) {
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  Client client(context);
  ASSIGN_OR_RETURN(const auto node, client.GetEnrolledNode(arguments.node));
  const auto presence = client.GetNode(arguments.node);
  const auto attached = FetchAttached(context, arguments.node);
  std::optional<PresenceMap> presences;
  // A node that never sent heartbeats is not found.
  if (presence.ok() || absl::IsNotFound(presence.status())) presences.emplace();
  if (presence.ok()) presences->emplace(arguments.node, *presence);
  const std::optional<bool> duplicate = HasDuplicateAgent(node, presences, attached);
  if (line.json) {
    Json json = ToJson(node);
    AddDuplicate(duplicate, &json);
    if (attached) AddAttachment(node, attached, &json);
    if (presences) {
      AddPresence(FindNode(*presences, node.name()), &json);
      json["events"] = Json::array();
      if (presence.ok()) {
        for (const v1::NodeEvent& event : presence->events()) {
          json["events"].push_back(EventJson(event));
        }
      }
    }
    console.out << Dump(json);
    return kExitOk;
  }
  Table table({{"NODE"}, {node.name()}});
  table.AddRow({"kind", KindOf(node)});
  table.AddRow({"identity", node.uri()});
  table.AddRow({"labels", LabelText(node.labels())});
  table.AddRow(
      {"joined", absl::StrCat(FormatTime(node.join_time()), ", token ", node.join_token())});
  table.AddRow({"certificate expires", FormatTime(node.expire_time())});
  table.AddRow({"parents", ParentsOf(node)});
  if (node.is_relay()) {
    table.AddRow({"addresses", absl::StrJoin(node.relay_targets(), ", ")});
    if (!node.join_targets().empty()) {
      table.AddRow({"join addresses", absl::StrJoin(node.join_targets(), ", ")});
    }
  }
  if (node.revoked()) {
    table.AddRow(
        {"revoked", absl::StrCat(FormatTime(node.revoke_time()), " by ", node.revoked_by(),
                                 node.revoke_reason().empty() ? "" : ": ", node.revoke_reason())});
  }
  table.AddRow({"attached", AttachmentText(node, attached, absl::Now())});
  if (const std::string link = LinkOf(node, attached); !link.empty()) {
    table.AddRow({"link", Printable(link)});
  }
  if (const v1::NodeInfo* info = InfoOf(node, attached); info != nullptr) {
    AddInfo(*info, absl::Now(), &table);
  }
  table.AddRow({"presence", PresenceWithTime(node, presences, attached, absl::Now())});
  if (presence.ok()) {
    for (const v1::NodeEvent& event : presence->events()) {
      table.AddRow({FormatTime(event.time()), event.detail()});
    }
  }
  console.out << table.Render(console.width);
  WarnOfMissingAnswers(console, presences.has_value(), attached.has_value());
  if (duplicate.value_or(false)) WarnOfDuplicateAgents(console, {arguments.node});
  return kExitOk;
}

absl::StatusOr<int> LabelNode(Console& console, const CommandLine& line,
                              const NodeArguments& arguments) {
  v1::LabelNodeRequest request;
  request.set_node(arguments.node);
  RETURN_IF_ERROR(AddLabels(arguments.labels, request.mutable_set()));
  request.mutable_remove()->Assign(arguments.remove.begin(), arguments.remove.end());
  if (request.set().empty() && request.remove().empty()) {
    return UsageError("a label to set or remove is required",
                      "Set a label, such as: muster node label n1 rack=b1.");
  }
  for (const std::string& key : arguments.remove) {
    if (!request.set().contains(key)) continue;
    return UsageError(absl::StrCat("label \"", Printable(key), "\" is both set and removed"),
                      "Set it, or remove it.");
  }
  ASSIGN_OR_RETURN(const auto client, Connect(line.context_file));
  ASSIGN_OR_RETURN(const auto before, client->GetEnrolledNode(arguments.node));
  for (const std::string& key : arguments.remove) {
    if (before.labels().contains(key)) continue;
    PrintMessage(console, absl::StrCat(before.name(), " has no label ", key, "."));
  }
  ASSIGN_OR_RETURN(const auto node, client->LabelNode(request));
  if (line.json) console.out << Dump(ToJson(node));
  PrintMessage(console,
               absl::StrCat(node.name(), " now has the labels ", LabelText(node.labels()), "."));
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
  PrintMessage(console, absl::StrCat(node.name(), " is revoked. Its name stays reserved until ",
                                     node.is_relay() ? "the relay" : "the node", " is removed."));
  return kExitOk;
}

absl::StatusOr<int> RemoveNode(Console& console, const CommandLine& line,
                               const NodeArguments& arguments) {
  ASSIGN_OR_RETURN(const auto client, Connect(line.context_file));
  RETURN_IF_ERROR(client->RemoveNode(arguments.node));
  PrintMessage(console,
               absl::StrCat(arguments.node,
                            " is removed from the fleet. A machine can join with its name."));
  return kExitOk;
}

absl::StatusOr<int> Join(Console& console, const JoinArguments& arguments) {
  ASSIGN_OR_RETURN(const auto token, ReadTokenFile(arguments.token_file));
  const std::string node = !arguments.node.empty() ? arguments.node : token.node;
  if (node.empty()) {
    return UsageError("the token is for any node: --node is required",
                      "Name the node, such as --node $(hostname).");
  }
  const std::string folder = NodeFolderPath(arguments.folder, ::getenv);
  const auto joined = JoinFleet(token, node, folder, arguments.link);
  if (!joined.ok()) return MarkJoinError(joined.status(), "node " + node);
  PrintMessage(
      console,
      absl::StrCat("This machine is node ", joined->name, " of fleet ", token.fleet,
                   ".\nIts identity is in ", folder, ", valid until ",
                   HumanTime(joined->certificate_ends, absl::Now()),
                   ".\nIts agent renews it. Start it: muster agent attach --dir ", folder));
  return kExitOk;
}

void AddJoin(CommandLine& line, CLI::App& group) {
  CLI::App& command = AddCommand(
      group, {.name = "join",
              .summary = "Join this machine to the fleet as a node",
              .details = "The node's key is generated here and never sent. If the answer was lost, "
                         "repeat the same command before the token expires.",
              .example = "muster node join --token-file n1.token\n"
                         "ssh n1 muster node join --token-file - < n1.token"});
  const auto arguments = std::make_shared<JoinArguments>();
  command.add_option("--token-file", arguments->token_file, "The token file, or - for stdin")
      ->required()
      ->type_name(kFileValue);
  command
      .add_option("--node", arguments->node,
                  "The name of the node (default: the name in the token)")
      ->type_name("NAME");
  AddNodeFolderOption(command, arguments->folder);
  AddLinkOption(command, arguments->link);
  SetAction(line, command, [arguments](Console& console) { return Join(console, *arguments); });
}

using NodeAction = absl::StatusOr<int> (*)(Console&, const CommandLine&, const NodeArguments&);

// Adds a command about one node.
CLI::App& AddNodeCommand(CommandLine& line, CLI::App& group, const CommandText& text,
                         const std::shared_ptr<NodeArguments>& arguments, NodeAction action) {
  CLI::App& command = AddCommand(group, text);
  command.add_option("NODE", arguments->node, "The node's name")->required()->type_name("");
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
  command.add_option("LABEL", arguments->labels, "A label to set, as key=value")->type_name("");
  command.add_option("--remove", arguments->remove, "The key of a label to remove")
      ->type_name("KEY");
  AddJsonOption(line, command);
  AddContextOption(line, command);
}

void AddRevoke(CommandLine& line, CLI::App& group) {
  const auto arguments = std::make_shared<NodeArguments>();
  CLI::App& command = AddNodeCommand(
      line, group,
      {.name = "revoke",
       .summary = "Revoke a node",
       .details = "All services refuse the node, and its streams end within seconds. It stays in "
                  "the list until it is removed.",
       .example = "muster node revoke n1 --reason \"disk was stolen\""},
      arguments, RevokeNode);
  command.add_option("--reason", arguments->reason, "The reason, stored with the node")
      ->type_name(kTextValue);
  AddJsonOption(line, command);
  AddContextOption(line, command);
}

}  // namespace

void AddNodeCommands(CommandLine& line) {
  const auto listed = std::make_shared<NodeArguments>();
  CLI::App& list =
      AddCommand(line.app, {.name = "nodes",
                            .summary = "List the nodes of the fleet",
                            .details = "ATTACHED is the relay to which the node is "
                                       "attached, or \"no\". PRESENCE is the "
                                       "presence of its agent while it works for a "
                                       "run, \"idle\" if it is only attached, or "
                                       "\"revoked\"; \"-\" for relays and for nodes that "
                                       "have sent no heartbeat.",
                            .example = "muster nodes\nmuster nodes --label rack=b1"});
  list.add_option("--label", listed->labels, "Only nodes with this label")->type_name("KEY=VALUE");
  AddJsonOption(line, list);
  AddContextOption(line, list);
  SetAction(line, list,
            [&line, listed](Console& console) { return ListNodes(console, line, *listed); });

  CLI::App& group = AddCommand(
      line.app, {.name = "node",
                 .summary = "Join this machine as a node; show, label, revoke and remove nodes",
                 .example = "muster node join --token-file n1.token"});
  group.require_subcommand(1);
  AddJoin(line, group);
  CLI::App& show = AddNodeCommand(
      line, group,
      {.name = "show", .summary = "Show a node and its events", .example = "muster node show n1"},
      std::make_shared<NodeArguments>(), ShowNode);
  AddJsonOption(line, show);
  AddContextOption(line, show);
  AddLabel(line, group);
  AddRevoke(line, group);
  CLI::App& remove =
      AddNodeCommand(line, group,
                     {.name = "remove",
                      .summary = "Remove a node from the fleet",
                      .details = "The node is revoked, and its name can be used again.",
                      .example = "muster node remove n1"},
                     std::make_shared<NodeArguments>(), RemoveNode);
  AddContextOption(line, remove);
}

}  // namespace muster::cli

#include "cli/commands/workspace_commands.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/exit_code.h"
#include "cli/output/format.h"
#include "cli/output/job_view.h"
#include "cli/output/json_view.h"
#include "cli/output/table.h"
#include "cli/rpc/deployment_client.h"
#include "cli/rpc/session.h"
#include "cli/rpc/workspace_client.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/rpc/proto_time.h"

namespace muster::cli {
namespace {

// Enough of an id to name it in later commands; the whole one is in --json.
constexpr size_t kShownDigits = 12;

struct WorkspaceArguments {
  std::string name;
  int64_t version = 0;
  std::string deployment;
};

absl::StatusOr<WorkspaceClient> OpenClient(const CommandLine& line) {
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  return WorkspaceClient::Open(context);
}

std::string StateWord(v1::WorkspaceState state) {
  std::string word = v1::WorkspaceState_Name(state).substr(std::strlen("WORKSPACE_STATE_"));
  for (char& c : word) c = c == '_' ? ' ' : absl::ascii_tolower(static_cast<unsigned char>(c));
  return word;
}

Json ToJson(const v1::Workspace::Version& version) {
  return {{"version", version.version()},
          {"sha256", ToHex(version.sha256())},
          {"size", version.size()},
          {"deployment", version.deployment()},
          {"node", version.node()},
          {"create_time", Rfc3339(FromProto(version.create_time()))},
          {"omitted", version.omitted()},
          {"restored_from", version.restored_from()},
          {"restored_by", version.restored_by()}};
}

Json ListedJson(const v1::Workspace& workspace) {
  return {{"workspace", workspace.workspace()},
          {"state", StateWord(workspace.state())},
          {"latest", workspace.latest()},
          {"deployment", workspace.deployment()},
          {"node", workspace.node()},
          {"since", workspace.has_since() ? Rfc3339(FromProto(workspace.since())) : ""},
          {"problem", workspace.problem()}};
}

Json ToJson(const v1::Workspace& workspace) {
  Json json = ListedJson(workspace);
  json["size"] = workspace.size();
  json["versions"] = Json::array();
  for (const auto& version : workspace.versions()) json["versions"].push_back(ToJson(version));
  return json;
}

// Returns what an operator can do about the state; empty: nothing is to be done.
std::string NextStep(const v1::Workspace& workspace) {
  // With its deployment, the command does not take the workspace from a later one.
  const std::string unlock = absl::StrCat("muster workspace unlock ", workspace.workspace(),
                                          " --deployment ", workspace.deployment());
  switch (workspace.state()) {
    case v1::WORKSPACE_STATE_IN_USE:
      return absl::StrCat("wait for deployment ", workspace.deployment(),
                          ", or cancel it: muster deployment cancel ", workspace.deployment());
    case v1::WORKSPACE_STATE_SAVING:
      return absl::StrCat("wait until node ", workspace.node(),
                          " is reachable and has sent its version. If it never will be, keep the "
                          "newest stored version: ",
                          unlock);
    case v1::WORKSPACE_STATE_SUSPECT:
      return absl::StrCat("look at what deployment ", workspace.deployment(), " did. If node ",
                          workspace.node(),
                          " will not send its version, keep the newest stored version: ", unlock);
    default:
      return "";
  }
}

std::string VersionText(const v1::Workspace& workspace) {
  return workspace.latest() == 0 ? "none yet" : absl::StrCat(workspace.latest());
}

std::string TableOf(const v1::Workspace& workspace, int width) {
  Table table({{"WORKSPACE"}, {Printable(workspace.workspace())}});
  table.AddRow({"state", StateWord(workspace.state())});
  table.AddRow({"version", VersionText(workspace)});
  if (!workspace.deployment().empty()) {
    table.AddRow(
        {"deployment", absl::StrCat(workspace.deployment(), " on ", workspace.node(), " since ",
                                    HumanTime(FromProto(workspace.since()), absl::Now()))});
  }
  if (!workspace.problem().empty()) table.AddRow({"problem", Printable(workspace.problem())});
  table.AddRow(
      {"stored", absl::StrCat(workspace.versions_size(),
                              workspace.versions_size() == 1 ? " version, " : " versions, ",
                              HumanSize(workspace.size()))});
  if (const std::string next = NextStep(workspace); !next.empty()) table.AddRow({"next", next});
  return table.Render(width);
}

absl::StatusOr<int> List(Console& console, const CommandLine& line) {
  ASSIGN_OR_RETURN(auto client, OpenClient(line));
  ASSIGN_OR_RETURN(const auto workspaces, client.List());
  Json json = Json::array();
  Table table({{"WORKSPACE"}, {"VERSION"}, {"STATE"}, {"DEPLOYMENT"}, {"NODE"}});
  for (const v1::Workspace& workspace : workspaces) {
    json.push_back(ListedJson(workspace));
    table.AddRow({workspace.workspace(), VersionText(workspace), StateWord(workspace.state()),
                  workspace.deployment().substr(0, kShownDigits), workspace.node()});
  }
  if (line.json) {
    console.out << Dump(json);
  } else if (workspaces.empty()) {
    PrintMessage(console,
                 "There are no workspaces. The first deployment with one creates it: "
                 "muster deploy TEMPLATE --node NODE --workspace NAME");
  } else {
    console.out << table.Render(console.width);
  }
  return kExitOk;
}

absl::StatusOr<int> Show(Console& console, const CommandLine& line,
                         const WorkspaceArguments& arguments) {
  ASSIGN_OR_RETURN(auto client, OpenClient(line));
  ASSIGN_OR_RETURN(const auto workspace, client.Get(arguments.name));
  console.out << (line.json ? Dump(ToJson(workspace)) : TableOf(workspace, console.width));
  return kExitOk;
}

absl::StatusOr<int> Versions(Console& console, const CommandLine& line,
                             const WorkspaceArguments& arguments) {
  ASSIGN_OR_RETURN(auto client, OpenClient(line));
  ASSIGN_OR_RETURN(const auto workspace, client.Get(arguments.name));
  if (line.json) {
    console.out << Dump(ToJson(workspace)["versions"]);
    return kExitOk;
  }
  Table table({{"VERSION"}, {"SAVED"}, {"SIZE"}, {"SHA256"}, {"NODE"}, {"DEPLOYMENT"}, {"NOTE"}});
  for (const v1::Workspace::Version& version : workspace.versions()) {
    std::string note;
    if (version.restored_from() > 0) {
      note = absl::StrCat("version ", version.restored_from(), " again, by ",
                          ShortName(version.restored_by()));
    } else if (version.omitted() > 0) {
      note = absl::StrCat(version.omitted(), " entries not saved");
    }
    table.AddRow({absl::StrCat(version.version()),
                  HumanTime(FromProto(version.create_time()), absl::Now()),
                  HumanSize(version.size()), ToHex(version.sha256()).substr(0, kShownDigits),
                  version.node(), version.deployment().substr(0, kShownDigits), note});
  }
  if (table.empty()) {
    PrintMessage(console, "Nothing was saved yet.");
  } else {
    console.out << table.Render(console.width);
  }
  return kExitOk;
}

absl::StatusOr<int> Restore(Console& console, const CommandLine& line,
                            const WorkspaceArguments& arguments) {
  ASSIGN_OR_RETURN(auto client, OpenClient(line));
  ASSIGN_OR_RETURN(const auto workspace, client.Restore(arguments.name, arguments.version));
  if (line.json) console.out << Dump(ToJson(workspace));
  PrintMessage(
      console,
      absl::StrCat("Version ", workspace.latest(), " of ", Printable(workspace.workspace()),
                   " is the newest one, with the content of version ", arguments.version, "."));
  return kExitOk;
}

// Returns the whole id of the named deployment; empty: none is named.
absl::StatusOr<std::string> NamedDeployment(const OperatorContext& context,
                                            const WorkspaceArguments& arguments) {
  if (arguments.deployment.empty()) return "";
  ASSIGN_OR_RETURN(const auto deployments, DeploymentClient::Open(context));
  return deployments->Resolve(arguments.deployment);
}

absl::StatusOr<int> Unlock(Console& console, const CommandLine& line,
                           const WorkspaceArguments& arguments) {
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  ASSIGN_OR_RETURN(auto client, WorkspaceClient::Open(context));
  ASSIGN_OR_RETURN(const auto deployment, NamedDeployment(context, arguments));
  ASSIGN_OR_RETURN(const auto workspace, client.Unlock(arguments.name, deployment));
  if (line.json) console.out << Dump(ToJson(workspace));
  PrintMessage(console,
               absl::StrCat("The workspace ", Printable(workspace.workspace()), " is free, ",
                            workspace.latest() == 0
                                ? "and empty."
                                : absl::StrCat("with version ", workspace.latest(), ".")));
  return kExitOk;
}

absl::StatusOr<int> Delete(Console& console, const CommandLine& line,
                           const WorkspaceArguments& arguments) {
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  ASSIGN_OR_RETURN(auto client, WorkspaceClient::Open(context));
  ASSIGN_OR_RETURN(const auto deployment, NamedDeployment(context, arguments));
  RETURN_IF_ERROR(client.Delete(arguments.name, deployment));
  if (line.json) console.out << Dump(Json{{"workspace", arguments.name}});
  PrintMessage(console, absl::StrCat("The workspace ", Printable(arguments.name),
                                     " is deleted, with all versions."));
  return kExitOk;
}

void AddName(CLI::App& command, WorkspaceArguments& arguments) {
  command.add_option("NAME", arguments.name, "The workspace")->required()->type_name("");
}

}  // namespace

void AddWorkspaceCommands(CommandLine& line) {
  const auto arguments = std::make_shared<WorkspaceArguments>();
  CLI::App& workspaces = AddCommand(
      line.app,
      {.name = "workspace",
       .summary = "Show, restore and delete the workspaces of deployments",
       .details = "A workspace is a folder that deployments keep between their runs, such as the "
                  "state of Terraform. docs/templates.md describes its use.",
       .example = "muster workspace show network"});
  workspaces.require_subcommand(1);
  const auto add = [&](const CommandText& text, auto action) -> CLI::App& {
    CLI::App& command = AddCommand(workspaces, text);
    AddJsonOption(line, command);
    AddContextOption(line, command);
    SetAction(line, command, [&line, arguments, action](Console& console) {
      return action(console, line, *arguments);
    });
    return command;
  };
  add({.name = "list",
       .summary = "List the workspaces, and which deployments have them",
       .example = "muster workspace list"},
      [](Console& console, const CommandLine& own, const WorkspaceArguments&) {
        return List(console, own);
      });
  AddName(add({.name = "show",
               .summary = "Show a workspace, and what to do if no deployment can have it",
               .example = "muster workspace show network"},
              Show),
          *arguments);
  AddName(add({.name = "versions",
               .summary = "List the stored versions of a workspace",
               .details = "The newest 10 are kept.",
               .example = "muster workspace versions network"},
              Versions),
          *arguments);
  CLI::App& restore =
      add({.name = "restore",
           .summary = "Make an older version of a workspace the newest one",
           .details = "It gets a new number; no version is removed. No deployment may have the "
                      "workspace.",
           .example = "muster workspace restore network 3"},
          Restore);
  AddName(restore, *arguments);
  CLI::Option* version = restore.add_option("VERSION", arguments->version, "A stored version");
  AllowRange(*version, 1, std::numeric_limits<int64_t>::max());
  version->required()->type_name("");
  CLI::App& unlock = add(
      {.name = "unlock",
       .summary = "Take a workspace from a deployment that has ended",
       .details = "The newest stored version is kept. What the deployment did to the workspace "
                  "is lost: its node is refused when it sends its version, and keeps that for a "
                  "day. Use it if the node will not come back.",
       .example = "muster workspace unlock network"},
      Unlock);
  AddName(unlock, *arguments);
  unlock
      .add_option("--deployment", arguments->deployment,
                  "Only if this deployment has the workspace: its id, or a unique prefix of it")
      ->type_name("DEPLOYMENT");
  CLI::App& remove =
      add({.name = "delete",
           .summary = "Delete a workspace that no deployment has, with all versions",
           .details = "This cannot be undone. A later workspace of this name begins empty, and "
                      "deployments that had the deleted one are not retried or destroyed with it. "
                      "A node that sends a version of the deleted one is refused, and keeps it "
                      "for a day.",
           .example = "muster workspace delete network"},
          Delete);
  AddName(remove, *arguments);
  remove
      .add_option("--deployment", arguments->deployment,
                  "Also if this deployment, which has ended, has the workspace: its id, or a "
                  "unique prefix of it. What it did to the workspace is lost")
      ->type_name("DEPLOYMENT");
}

}  // namespace muster::cli

#include "cli/commands/deploy_command.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/commands/deployment_files.h"
#include "cli/commands/deployment_run.h"
#include "cli/commands/job_targets.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/output/format.h"
#include "cli/output/json_view.h"
#include "cli/rpc/deployment_client.h"
#include "cli/rpc/session.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/utf8.h"
#include "services/common/templates/exact_json.h"
#include "services/common/templates/secrets.h"

namespace muster::cli {
namespace {

constexpr size_t kMaxValue = size_t{32} << 10;

struct DeployArguments {
  std::string subject;  // a template, or files with --type
  std::string type;
  std::string files_path;
  std::string action;
  TargetArguments targets;
  std::vector<std::string> values;
  std::vector<std::string> texts;
  std::vector<std::string> text_files;
  std::vector<std::string> secrets;
  std::string workspace;
  RolloutArguments run;
};

// Splits NAME=VALUE.
absl::StatusOr<std::pair<std::string, std::string>> SplitValue(const std::string& option,
                                                               const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos) {
    return UsageError(absl::StrCat(option, ": \"", Printable(text), "\" is not NAME=VALUE"),
                      "Name the parameter, such as --set region=eu.");
  }
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

// Returns the parameters as a JSON object.
absl::StatusOr<std::string> ParametersOf(const DeployArguments& arguments) {
  Json json = Json::object();
  const auto set = [&json](const std::string& name, Json value) -> absl::Status {
    if (json.contains(name)) {
      return UsageError(absl::StrCat("the parameter ", Printable(name), " is set twice"),
                        "Set each parameter once.");
    }
    json[name] = std::move(value);
    return absl::OkStatus();
  };
  for (const std::string& text : arguments.values) {
    ASSIGN_OR_RETURN(const auto parts, SplitValue("--set", text));
    // A value that is no JSON is text.
    auto [value, fault] = ParseExactJson<Json>(parts.second);
    if (fault == JsonFault::kNotJson) value = parts.second;
    if (fault == JsonFault::kTooDeep || fault == JsonFault::kTwice) {
      return UsageError(absl::StrCat("--set: ", Printable(parts.first), " ", FaultText(fault)),
                        "Correct the value, or set it as text with --set-text.");
    }
    RETURN_IF_ERROR(set(parts.first, std::move(value)));
  }
  for (const std::string& text : arguments.texts) {
    ASSIGN_OR_RETURN(const auto parts, SplitValue("--set-text", text));
    RETURN_IF_ERROR(set(parts.first, parts.second));
  }
  for (const std::string& text : arguments.text_files) {
    ASSIGN_OR_RETURN(const auto parts, SplitValue("--set-file", text));
    ASSIGN_OR_RETURN(const auto content, ReadFileBounded(parts.second, kMaxValue));
    if (!IsUtf8(content)) {
      return UsageError(absl::StrCat("--set-file: ", Printable(parts.second), " is not UTF-8"),
                        "Values are JSON: encode other bytes, for instance with base64.");
    }
    RETURN_IF_ERROR(set(parts.first, content));
  }
  return ExactJsonText(json);
}

// Reads NAME=SECRET or NAME=SECRET@VERSION.
absl::Status AddSecret(const std::string& text, v1::PlanDeploymentRequest* wanted) {
  ASSIGN_OR_RETURN(const auto parts, SplitValue("--secret", text));
  const size_t at = parts.second.find('@');
  v1::Command::SecretReference& secret = *wanted->add_secrets();
  secret.set_name(parts.first);
  secret.set_secret(parts.second.substr(0, at));
  int64_t version = 0;
  const bool has_version = at != std::string::npos;
  if (!IsSecretSource(secret.secret()) ||
      (has_version && (!absl::SimpleAtoi(parts.second.substr(at + 1), &version) || version < 1))) {
    return UsageError(
        absl::StrCat("--secret: \"", Printable(parts.second), "\" names no secret"),
        "Name a stored secret, such as --secret db=prod/db or db=prod/db@3, or one of "
        "Vault, such as --secret db=vault:prod/db#password.");
  }
  secret.set_version(version);
  return absl::OkStatus();
}

// Reads the parameters and the list of files. With --type, the argument names files.
absl::StatusOr<v1::PlanDeploymentRequest> Wanted(const DeployArguments& arguments,
                                                 std::vector<LocalFile>& files) {
  v1::PlanDeploymentRequest wanted;
  wanted.set_type(arguments.type);
  if (arguments.type.empty()) wanted.set_template_(arguments.subject);
  wanted.set_action(arguments.action);
  ASSIGN_OR_RETURN(*wanted.mutable_parameters(), ParametersOf(arguments));
  for (const std::string& secret : arguments.secrets) RETURN_IF_ERROR(AddSecret(secret, &wanted));
  wanted.set_workspace(arguments.workspace);
  const std::string& path = arguments.type.empty() ? arguments.files_path : arguments.subject;
  if (path.empty()) return wanted;
  ASSIGN_OR_RETURN(files, ReadDeploymentFiles(path));
  *wanted.mutable_files() = FilesOf(files);
  return wanted;
}

absl::StatusOr<int> Deploy(Console& console, const CommandLine& line,
                           const DeployArguments& arguments) {
  RETURN_IF_ERROR(CheckTargets(arguments.targets, "muster deploy"));
  if (arguments.subject.empty() && arguments.type.empty()) {
    return UsageError("give a template, or --type", "See the example in `muster deploy --help`.");
  }
  if (!arguments.workspace.empty() && arguments.targets.all) {
    return UsageError("--workspace is for one node", "Name it: --node NODE instead of --all.");
  }
  if (!arguments.type.empty() && !arguments.files_path.empty()) {
    return UsageError("--files is for a template", "With --type, give the files as the argument.");
  }
  CatchInterrupts();
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  ASSIGN_OR_RETURN(const auto client, DeploymentClient::Open(context));
  std::vector<LocalFile> files;
  ASSIGN_OR_RETURN(const auto wanted, Wanted(arguments, files));
  const auto place_files = [&](v1::Command::Deployment* content) {
    RETURN_IF_ERROR(SendFiles(console, context, content->ByteSizeLong(), files));
    *content->mutable_files() = FilesOf(files);
    return absl::OkStatus();
  };
  const auto request =
      PlannedRequest(context, *client, wanted, place_files, arguments.targets, arguments.run);
  if (!request.ok() && Interrupted()) return ReportNotCreated(console, !files.empty());
  RETURN_IF_ERROR(request.status());
  return CreateAndReport(console, line, context, *client, *request, arguments.run);
}

void AddContentOptions(CLI::App& command, DeployArguments& arguments) {
  command
      .add_option(
          "TEMPLATE|FILES", arguments.subject,
          "The template as NAME@VERSION; NAME@1.2 is the newest release 1.2.x, and NAME the "
          "newest release. With --type: the folder or file that an ad-hoc type runs")
      ->type_name("");
  command
      .add_option("--type", arguments.type,
                  "Deploy a template type alone: its version, as for a template")
      ->type_name("TYPE");
  command
      .add_option("--files", arguments.files_path,
                  "The folder or file for a template of an ad-hoc type")
      ->type_name("PATH");
  command.add_option("--action", arguments.action, "An action of the type (default: deploy)")
      ->type_name("ACTION");
  command
      .add_option("--set", arguments.values,
                  "The value of a parameter: JSON, or text that is no JSON")
      ->type_name("NAME=VALUE");
  command.add_option("--set-text", arguments.texts, "A value that is always text")
      ->type_name("NAME=TEXT");
  command.add_option("--set-file", arguments.text_files, "A value that is the text of a file")
      ->type_name("NAME=FILE");
  command
      .add_option("--secret", arguments.secrets,
                  "A secret for the container, as the documents name it: a stored one, or "
                  "vault:PATH#FIELD. Without a version it is the newest one now")
      ->type_name("NAME=SECRET[@VERSION]");
  command
      .add_option("--workspace", arguments.workspace,
                  "The workspace for the container, at /state/workspace: the folder as the last "
                  "deployment with it left it. For one node")
      ->type_name("NAME");
}

}  // namespace

void AddDeployCommand(CommandLine& line) {
  CLI::App& command = AddCommand(
      line.app,
      {.name = "deploy",
       .summary = "Run a template in a container on nodes",
       .details =
           "The parameters are checked before anything runs, and again on each node. The "
           "deployment "
           "is signed with your identity, and the policy of each node decides whether it runs.\n"
           "Files that do not fit into the command are uploaded to the jobs service first. After a "
           "failure, run the command again: the upload continues where it ended.\n"
           "Prints the id of the deployment; with --wait its output, and what became of it. With "
           "--wait the exit code is 9 unless it succeeded on every node.",
       .example = "muster deploy web@1.4 --node n1 --set region=eu --wait\n"
                  "muster deploy checks/ --type shell --label rack=b1"});
  const auto arguments = std::make_shared<DeployArguments>();
  AddContentOptions(command, *arguments);
  AddTargetOptions(command, arguments->targets);
  AddRolloutOptions(command, "that of the template or type, else 1h", arguments->run);
  AddJsonOption(line, command);
  AddContextOption(line, command);
  SetAction(line, command,
            [&line, arguments](Console& console) { return Deploy(console, line, *arguments); });
}

}  // namespace muster::cli

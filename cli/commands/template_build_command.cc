#include "cli/commands/template_build_command.h"

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/commands/deployment_files.h"
#include "cli/commands/deployment_run.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/output/deployment_view.h"
#include "cli/output/json_view.h"
#include "cli/rpc/deployment_client.h"
#include "cli/rpc/session.h"
#include "cli/rpc/sign_command.h"
#include "cli/sources/template_source_reader.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"

namespace muster::cli {
namespace {

constexpr size_t kMaxDocumentFile = size_t{1} << 20;
constexpr absl::Duration kDefaultDeadline = absl::Minutes(10);

struct BuildArguments {
  std::string document;
  std::string from;
  std::string node;
  std::string repository;
  GitOptions git;
  RolloutArguments run;
};

// Adds what the environment sets.
GitOptions GitOptionsOf(const BuildArguments& arguments) {
  GitOptions git = arguments.git;
  const char* hosts = std::getenv("MUSTER_GIT_HOSTS");
  if (git.hosts.empty() && hosts != nullptr) {
    git.hosts = absl::StrSplit(hosts, ',', absl::SkipEmpty());
  }
  for (std::string& host : git.hosts) absl::AsciiStrToLower(&host);
  const char* ca_file = std::getenv("MUSTER_GIT_CA");
  if (git.ca_file.empty() && ca_file != nullptr) git.ca_file = ca_file;
  // Git runs in another folder.
  if (!git.ca_file.empty()) git.ca_file = std::filesystem::absolute(git.ca_file);
  return git;
}

absl::StatusOr<TemplateSourceFiles> ReadSource(const BuildArguments& arguments) {
  auto read = ReadTemplateSource(arguments.from, GitOptionsOf(arguments));
  if (absl::IsInvalidArgument(read.status())) return AsUsageError(read.status());
  return read;
}

absl::StatusOr<v1::PlanDeploymentRequest> Wanted(const BuildArguments& arguments,
                                                 const TemplateSourceFiles& source) {
  v1::PlanDeploymentRequest wanted;
  v1::Command::Build& build = *wanted.mutable_build();
  ASSIGN_OR_RETURN(*build.mutable_template_document(),
                   ReadFileBounded(arguments.document, kMaxDocumentFile));
  *build.mutable_files() = FilesOf(source.files);
  *build.mutable_source() = source.source;
  build.set_repository(arguments.repository);
  return wanted;
}

// The version exists: the same files are not built again.
absl::StatusOr<int> ReportBuilt(Console& console, const CommandLine& line, DeploymentClient& client,
                                const std::string& version) {
  ASSIGN_OR_RETURN(const auto own, client.GetTemplate(version));
  if (line.json) console.out << Dump(ToJson(own));
  PrintMessage(console,
               absl::StrCat("Template ", version, " was built from the same files before, as ",
                            own.image(), ".\nNothing is built. Deploy it: muster deploy ", version,
                            " --node NODE --wait"));
  return kExitOk;
}

absl::StatusOr<int> Build(Console& console, const CommandLine& line,
                          const BuildArguments& arguments) {
  CatchInterrupts();
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  ASSIGN_OR_RETURN(auto source, ReadSource(arguments));
  ASSIGN_OR_RETURN(const auto wanted, Wanted(arguments, source));
  ASSIGN_OR_RETURN(const auto client, DeploymentClient::Open(context));
  ASSIGN_OR_RETURN(auto plan, client->Plan(wanted));
  if (!plan.built().empty()) return ReportBuilt(console, line, *client, plan.built());
  RETURN_IF_ERROR(SendFiles(console, context, plan.build().ByteSizeLong(), source.files));
  *plan.mutable_build()->mutable_files() = FilesOf(source.files);
  ASSIGN_OR_RETURN(auto command,
                   MakeBuildCommand(plan.image(), plan.build(), kDefaultDeadline, arguments.run));
  ASSIGN_OR_RETURN(const auto signer, CommandSigner::Create(context));
  ASSIGN_OR_RETURN(const auto request,
                   SignedRequest(signer, std::move(command), {arguments.node}, arguments.run));
  return CreateAndReport(console, line, context, *client, request, arguments.run);
}

void AddOptions(CLI::App& command, BuildArguments& arguments) {
  command
      .add_option("-f,--file", arguments.document, "The document of the template, in YAML or JSON")
      ->required()
      ->type_name(kFileValue);
  command
      .add_option(
          "--from", arguments.from,
          "The files: a folder, a zip, tar or tar.gz, or git+https://HOST/PATH@REF[#FOLDER], "
          "where REF is a branch, a tag or a commit")
      ->required()
      ->type_name("SOURCE");
  command.add_option("--node", arguments.node, "The node that builds the image")
      ->required()
      ->type_name("NODE");
  command
      .add_option("--repository", arguments.repository,
                  "The name of the image with its registry, without a tag: "
                  "registry.example/templates/web")
      ->required()
      ->type_name("NAME");
  command
      .add_option("--git-host", arguments.git.hosts,
                  "A host of git that may be asked; repeatable (default: $MUSTER_GIT_HOSTS, a list "
                  "with commas, else all)")
      ->delimiter(',')
      ->type_name("HOST");
  command
      .add_option("--git-ca", arguments.git.ca_file,
                  "The CA certificates of git servers, in PEM (default: $MUSTER_GIT_CA, else those "
                  "of this machine)")
      ->type_name(kFileValue);
}

}  // namespace

void AddTemplateBuildCommand(CommandLine& line, CLI::App& templates) {
  CLI::App& command = AddCommand(
      templates,
      {.name = "build",
       .summary = "Build the image of a template on a node, and store the version",
       .details =
           "The files are copied into the image of the type, and nothing is executed. Files that "
           "do "
           "not fit into the command are uploaded to the jobs service first. The node "
           "pushes the image to its registry; the version of the template then runs it on any "
           "node. The build is signed with your identity, and the policy of the node decides "
           "whether it runs. `muster deployment logs`, `show` and `cancel` take its id.\n"
           "The same files are not built again. Another source needs a new version.",
       .example = "muster template build -f web.yaml --from site.zip --node b1 --repository "
                  "registry.example/templates/web --wait\n"
                  "muster template build -f web.yaml --from git+https://git.example/web@v1.4#site "
                  "--node b1 --repository registry.example/templates/web"});
  const auto arguments = std::make_shared<BuildArguments>();
  AddOptions(command, *arguments);
  AddDeadlineOption(command, "10m", arguments->run);
  AddWaitOption(command, "build", arguments->run);
  AddJsonOption(line, command);
  AddContextOption(line, command);
  SetAction(line, command,
            [&line, arguments](Console& console) { return Build(console, line, *arguments); });
}

}  // namespace muster::cli

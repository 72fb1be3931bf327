#include "cli/commands/template_build_command.h"

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/commands/deployment_files.h"
#include "cli/commands/deployment_run.h"
#include "cli/commands/file_argument.h"
#include "cli/commands/job_targets.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/output/deployment_view.h"
#include "cli/output/json_view.h"
#include "cli/output/template_hints.h"
#include "cli/rpc/deployment_client.h"
#include "cli/rpc/session.h"
#include "cli/rpc/sign_command.h"
#include "cli/sources/template_source_reader.h"
#include "services/common/base/status_macros.h"

namespace muster::cli {
namespace {

constexpr size_t kMaxDocumentFile = size_t{1} << 20;
constexpr absl::Duration kDefaultDeadline = absl::Minutes(10);
constexpr std::string_view kTemplatePrefix = "template:";  // of a version whose files are taken

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

bool IsStoredVersion(const std::string& from) { return from.starts_with(kTemplatePrefix); }

// The jobs service has the files of a stored version.
absl::StatusOr<TemplateSourceFiles> ReadSource(const BuildArguments& arguments) {
  if (IsStoredVersion(arguments.from)) return TemplateSourceFiles{};
  auto read = ReadTemplateSource(arguments.from, GitOptionsOf(arguments));
  if (absl::IsInvalidArgument(read.status())) return AsUsageError(read.status());
  return read;
}

absl::StatusOr<v1::PlanDeploymentRequest> Wanted(const BuildArguments& arguments,
                                                 const TemplateSourceFiles& source) {
  v1::PlanDeploymentRequest wanted;
  v1::Command::Build& build = *wanted.mutable_build();
  ASSIGN_OR_RETURN(*build.mutable_template_document(),
                   ReadFileArgument(arguments.document, kMaxDocumentFile));
  build.set_repository(arguments.repository);
  if (IsStoredVersion(arguments.from)) {
    wanted.set_build_from(arguments.from.substr(kTemplatePrefix.size()));
    return wanted;
  }
  *build.mutable_files() = FilesOf(source.files);
  *build.mutable_source() = source.source;
  return wanted;
}

// A build that is planned, and not stored.
struct PlannedBuild {
  v1::DeploymentPlan plan;
  std::string id;
  v1::CreateDeploymentRequest request;  // unset if the version is built
};

// Reads the source, and uploads what does not fit into the command, unless the version is built.
absl::StatusOr<PlannedBuild> PlanBuild(Console& console, const OperatorContext& context,
                                       DeploymentClient& client, const BuildArguments& arguments) {
  PlannedBuild planned;
  ASSIGN_OR_RETURN(auto source, ReadSource(arguments));
  ASSIGN_OR_RETURN(const auto wanted, Wanted(arguments, source));
  auto plan = client.Plan(wanted);
  if (!plan.ok()) return WithFile(plan.status(), arguments.document);
  planned.plan = *std::move(plan);
  if (!planned.plan.built().empty()) return planned;
  v1::Command::Build& build = *planned.plan.mutable_build();
  if (!IsStoredVersion(arguments.from)) {
    RETURN_IF_ERROR(SendFiles(console, context, build.ByteSizeLong(), source.files));
    *build.mutable_files() = FilesOf(source.files);
  }
  ASSIGN_OR_RETURN(auto command,
                   MakeBuildCommand(planned.plan.image(), build, kDefaultDeadline, arguments.run));
  planned.id = command.container().build().build();
  ASSIGN_OR_RETURN(const auto signer, CommandSigner::Create(context));
  ASSIGN_OR_RETURN(planned.request,
                   SignedRequest(signer, std::move(command), {arguments.node}, arguments.run));
  return planned;
}

void PrintHint(Console& console, const std::string& hint) {
  if (!hint.empty()) PrintMessage(console, hint);
}

// Returns the build that has created a version as `muster deployment show` does. Its id is not
// known.
v1::Deployment FormerBuild(const v1::Template& own, const v1::DeploymentPlan& plan) {
  v1::Deployment build;
  build.set_type(own.type());
  build.set_template_(plan.built());
  build.set_action(std::string(kBuildAction));
  build.set_image(plan.image());
  build.set_state(v1::DEPLOYMENT_STATE_SUCCEEDED);
  build.set_created_by(own.created_by());
  *build.mutable_create_time() = own.create_time();
  build.mutable_build()->set_repository(own.image().substr(0, own.image().find('@')));
  *build.mutable_build()->mutable_source() = own.source();
  build.mutable_build()->set_image(own.image());
  return build;
}

// The version exists: the same files are not built again.
absl::StatusOr<int> ReportBuilt(Console& console, const CommandLine& line, DeploymentClient& client,
                                const v1::DeploymentPlan& plan, const BuildArguments& arguments) {
  ASSIGN_OR_RETURN(const auto own, client.GetTemplate(plan.built()));
  const v1::Deployment build = FormerBuild(own, plan);
  if (line.json) console.out << Dump(ToJson(build));
  PrintMessage(console,
               absl::StrCat("Template ", plan.built(), " was built from the same files before, as ",
                            own.image(), ".\nNothing is built."));
  if (build.build().repository() != arguments.repository) {
    PrintMessage(console, absl::StrCat("Nothing is pushed to ", arguments.repository,
                                       ": a version has one image. For that repository, write "
                                       "another version into ",
                                       arguments.document, "."));
  }
  PrintHint(console, DeployHint(plan.build().type_document(), own.document()));
  return kExitOk;
}

absl::StatusOr<int> Build(Console& console, const CommandLine& line,
                          const BuildArguments& arguments) {
  CatchInterrupts();
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  ASSIGN_OR_RETURN(const auto client, DeploymentClient::Open(context));
  const auto planned = PlanBuild(console, context, *client, arguments);
  if (!planned.ok() && Interrupted()) return ReportNotCreated(console, /*has_files=*/true);
  RETURN_IF_ERROR(planned.status());
  const v1::DeploymentPlan& plan = planned->plan;
  if (!plan.built().empty()) return ReportBuilt(console, line, *client, plan, arguments);
  const std::string& type = plan.build().type_document();
  const std::string& own = plan.build().template_document();
  PrintHint(console, AddedParameters(type, own));
  ASSIGN_OR_RETURN(const int code, CreateAndReport(console, line, context, *client,
                                                   planned->request, arguments.run));
  if (code != kExitOk) return code;
  if (!arguments.run.wait) {
    PrintMessage(console, absl::StrCat("Follow the build: muster deployment logs ", planned->id,
                                       " --follow\nWhen it has succeeded:"));
  }
  PrintHint(console, DeployHint(type, own));
  return code;
}

void AddOptions(CLI::App& command, BuildArguments& arguments) {
  command
      .add_option("-f,--file", arguments.document,
                  "The document of the template, in YAML or JSON; - for stdin")
      ->required()
      ->type_name(kFileValue);
  command
      .add_option(
          "--from", arguments.from,
          "The files: a folder, a zip, tar or tar.gz, git+https://HOST/PATH@REF[#FOLDER], where "
          "REF is a branch, a tag or a commit, or template:NAME@VERSION, for those of a stored "
          "version")
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
           "The same files are not built again. Another source needs a new version.\n"
           "In the JSON of a build, `image` is the base image, and `build.image` the result.",
       .example = "muster template build -f web.yaml --from site.zip --node b1 --repository "
                  "registry.example/templates/web --wait\n"
                  "muster template build -f web.yaml --from git+https://git.example/web@v1.4#site "
                  "--node b1 --repository registry.example/templates/web"});
  const auto arguments = std::make_shared<BuildArguments>();
  AddOptions(command, *arguments);
  AddDeadlineOption(command, "10m", arguments->run);
  AddTtlOption(command, "build", "an unreachable node", arguments->run.ttl);
  AddWaitOption(command, "build", arguments->run);
  AddJsonOption(line, command);
  AddContextOption(line, command);
  SetAction(line, command,
            [&line, arguments](Console& console) { return Build(console, line, *arguments); });
}

}  // namespace muster::cli

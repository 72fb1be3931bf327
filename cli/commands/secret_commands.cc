#include "cli/commands/secret_commands.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/commands/file_argument.h"
#include "cli/exit_code.h"
#include "cli/output/format.h"
#include "cli/output/job_view.h"
#include "cli/output/json_view.h"
#include "cli/output/table.h"
#include "cli/rpc/deployment_client.h"
#include "cli/rpc/session.h"
#include "services/common/base/status_macros.h"
#include "services/common/identity/key_wrap.h"  // kMaxSecret
#include "services/common/rpc/proto_time.h"

namespace muster::cli {
namespace {

constexpr int kPage = 1'000;

struct SecretArguments {
  std::string name;
  std::string file;
};

absl::StatusOr<std::unique_ptr<DeploymentClient>> OpenClient(const CommandLine& line) {
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  return DeploymentClient::Open(context);
}

Json ToJson(const v1::Secret& secret) {
  Json versions = Json::array();
  for (const v1::Secret::Version& version : secret.versions()) {
    versions.push_back({{"version", version.version()},
                        {"size", version.size()},
                        {"created_by", version.created_by()},
                        {"create_time", Rfc3339(FromProto(version.create_time()))}});
  }
  return {{"secret", secret.secret()}, {"versions", std::move(versions)}};
}

absl::StatusOr<int> Put(Console& console, const CommandLine& line,
                        const SecretArguments& arguments) {
  ASSIGN_OR_RETURN(auto value, ReadFileArgument(arguments.file, kMaxSecret));
  ASSIGN_OR_RETURN(const auto client, OpenClient(line));
  ASSIGN_OR_RETURN(const auto secret, client->PutSecret(arguments.name, std::move(value)));
  if (line.json) console.out << Dump(ToJson(secret));
  PrintMessage(console, absl::StrCat("Version ", secret.versions(0).version(), " of ",
                                     Printable(secret.secret()), " is stored.\nUse it: ",
                                     "muster deploy TEMPLATE --node NODE --secret NAME=",
                                     Printable(secret.secret())));
  return kExitOk;
}

absl::StatusOr<int> List(Console& console, const CommandLine& line) {
  ASSIGN_OR_RETURN(const auto client, OpenClient(line));
  v1::ListSecretsRequest request;
  request.set_page_size(kPage);
  Json json = Json::array();
  Table table({{"SECRET"}, {"VERSION"}, {"SIZE"}, {"CREATED"}, {"BY"}});
  do {
    ASSIGN_OR_RETURN(const auto page, client->ListSecrets(request));
    request.set_page_token(page.next_page_token());
    for (const v1::Secret& secret : page.secrets()) {
      if (line.json) json.push_back(ToJson(secret));
      for (const v1::Secret::Version& version : secret.versions()) {
        table.AddRow({secret.secret(), absl::StrCat(version.version()), HumanSize(version.size()),
                      HumanTime(FromProto(version.create_time()), absl::Now()),
                      ShortName(version.created_by())});
      }
    }
  } while (!request.page_token().empty());
  if (line.json) {
    console.out << Dump(json);
  } else if (table.empty()) {
    PrintMessage(console, "There are no secrets. Store one: muster secret put NAME --file FILE");
  } else {
    console.out << table.Render(console.width);
  }
  return kExitOk;
}

absl::StatusOr<int> Delete(Console& console, const CommandLine& line,
                           const SecretArguments& arguments) {
  ASSIGN_OR_RETURN(const auto client, OpenClient(line));
  RETURN_IF_ERROR(client->DeleteSecret(arguments.name));
  if (line.json) console.out << Dump(Json{{"secret", arguments.name}});
  PrintMessage(console, absl::StrCat("The secret ", Printable(arguments.name),
                                     " is deleted. Containers that have it keep it until they "
                                     "end."));
  return kExitOk;
}

}  // namespace

void AddSecretCommands(CommandLine& line) {
  const auto arguments = std::make_shared<SecretArguments>();
  CLI::App& secrets = AddCommand(
      line.app,
      {.name = "secret",
       .summary = "Store, list and delete secrets of deployments",
       .details = "Only the containers of deployments get the values: no command prints them, and "
                  "relays cannot read them. docs/templates.md describes their use.",
       .example = "muster secret put prod/db --file password"});
  secrets.require_subcommand(1);
  const auto add = [&](const CommandText& text, auto action) -> CLI::App& {
    CLI::App& command = AddCommand(secrets, text);
    AddJsonOption(line, command);
    AddContextOption(line, command);
    SetAction(line, command, action);
    return command;
  };
  CLI::App& put =
      add({.name = "put",
           .summary = "Store a new version of a secret",
           .details = "The value is the whole content of the file, at most 64 KiB. The same value "
                      "again changes nothing. The newest 10 versions are kept.",
           .example = "muster secret put prod/db --file password"},
          [&line, arguments](Console& console) { return Put(console, line, *arguments); });
  put.add_option("NAME", arguments->name, "The secret, such as prod/db")->required()->type_name("");
  put.add_option("--file", arguments->file, "The file with the value; - reads standard input")
      ->required()
      ->type_name(kFileValue);
  add({.name = "list",
       .summary = "List the secrets with their versions, without values",
       .example = "muster secret list"},
      [&line](Console& console) { return List(console, line); });
  CLI::App& remove =
      add({.name = "delete",
           .summary = "Delete all versions of a secret",
           .details = "Deployments that name it do not start any more. Nodes that have it already "
                      "keep it until the container ends.",
           .example = "muster secret delete prod/db"},
          [&line, arguments](Console& console) { return Delete(console, line, *arguments); });
  remove.add_option("NAME", arguments->name, "The secret, such as prod/db")
      ->required()
      ->type_name("");
}

}  // namespace muster::cli

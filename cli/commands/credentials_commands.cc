#include "cli/commands/credentials_commands.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/commands/credential_formats.h"
#include "cli/commands/secret_output.h"
#include "cli/exit_code.h"
#include "cli/output/format.h"
#include "cli/output/json_view.h"
#include "cli/rpc/run_reference.h"
#include "cli/rpc/session.h"
#include "services/common/base/random_id.h"
#include "services/common/base/status_macros.h"
#include "services/common/identity/pkcs12.h"
#include "services/common/identity/signing_request.h"

namespace muster::cli {
namespace {

constexpr size_t kPasswordBytes = 12;

struct ExportArguments {
  std::string run;
  std::string plugin;
  std::string node;
  bool any_node = false;
  bool pkcs12 = false;
  std::string format = "json";
  std::string output;
};

absl::StatusOr<KeyedCredential> Issue(Client& client, const ExportArguments& arguments) {
  ASSIGN_OR_RETURN(auto run, ResolveRun(client, arguments.run));
  ASSIGN_OR_RETURN(auto key, PrivateKey::Generate());
  ASSIGN_OR_RETURN(const auto csr, CreateSigningRequest(key));
  v1::IssueCredentialRequest request;
  request.set_run(run);
  request.set_plugin(arguments.plugin);
  request.set_node(arguments.node);
  request.set_any_node(arguments.any_node);
  request.set_csr_pem(csr);
  request.set_listener_optional(arguments.format == "json");  // agents deliver by gRPC
  ASSIGN_OR_RETURN(auto credential, client.IssueCredential(request));
  return KeyedCredential{.run = std::move(run),
                         .plugin = arguments.plugin,
                         .node = arguments.node,
                         .credential = std::move(credential),
                         .key = std::move(key)};
}

absl::StatusOr<std::string> FormatCredential(const KeyedCredential& credential,
                                             const std::string& format) {
  if (format == "env") return ShellEnvironment(credential);
  if (format == "kubernetes") return KubernetesObjects(credential);
  return AgentJson(credential);
}

// Exports the operator's own certificate, with which a browser signs in.
absl::StatusOr<int> ExportForBrowser(Console& console, const CommandLine& line,
                                     const ExportArguments& arguments) {
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  ASSIGN_OR_RETURN(const auto key, PrivateKey::FromPem(context.private_key_pem.view()));
  ASSIGN_OR_RETURN(const auto chain, ParseChain(context.certificate_chain_pem));
  const std::string password = RandomHex(kPasswordBytes);
  ASSIGN_OR_RETURN(const auto file, MakePkcs12(key, chain, context.fleet, password));
  RETURN_IF_ERROR(WriteSecretOutput(console, arguments.output, file.view()));
  PrintMessage(console, absl::StrCat(arguments.output,
                                     " contains your certificate and key: import it into the "
                                     "browser, then delete it. Password: ",
                                     password));
  return kExitOk;
}

absl::Status CheckForBrowser(const ExportArguments& arguments) {
  if (!arguments.run.empty() || !arguments.plugin.empty() || !arguments.node.empty() ||
      arguments.any_node) {
    return UsageError("--p12 exports the operator's own certificate, not one of a run",
                      "Omit the run, --plugin, --node and --any-node.");
  }
  if (arguments.output.empty() || arguments.output == "-") {
    return UsageError("--p12 writes a binary file", "Name the file: -o FILE.");
  }
  return absl::OkStatus();
}

absl::Status CheckForDelivery(const ExportArguments& arguments) {
  if (arguments.run.empty() || arguments.plugin.empty()) {
    return UsageError("the run and --plugin are required",
                      "Name the run and --plugin, or use --p12 for a browser.");
  }
  if (arguments.any_node == !arguments.node.empty()) {
    return UsageError("exactly one of --node and --any-node is required",
                      "Use --node NODE for one node (\"global\" for a plugin that runs once), or "
                      "--any-node for all planned nodes.");
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Export(Console& console, const CommandLine& line,
                           const ExportArguments& arguments) {
  RETURN_IF_ERROR(arguments.pkcs12 ? CheckForBrowser(arguments) : CheckForDelivery(arguments));
  RETURN_IF_ERROR(CheckNewSecretOutput("--output", arguments.output));
  if (arguments.pkcs12) return ExportForBrowser(console, line, arguments);
  ASSIGN_OR_RETURN(const auto client, Connect(line.context_file));
  ASSIGN_OR_RETURN(const auto credential, Issue(*client, arguments));
  ASSIGN_OR_RETURN(const auto text, FormatCredential(credential, arguments.format));
  RETURN_IF_ERROR(WriteSecretOutput(console, arguments.output, text));
  PrintMessage(console,
               absl::StrCat("Credential for ", arguments.plugin, " on ",
                            arguments.any_node ? "any planned node" : arguments.node, " in run ",
                            credential.run, ", valid until ",
                            HumanTime(FromProto(credential.credential.expire_time()), absl::Now()),
                            arguments.output.empty() ? "" : absl::StrCat(": ", arguments.output)));
  if (credential.credential.legacy_urls().empty()) {
    PrintMessage(console,
                 "The run's listener for legacy clients is not open: the credential is for gRPC "
                 "only. `muster credentials export --format env` states the reason.");
  }
  return kExitOk;
}

}  // namespace

void AddCredentialsCommands(CommandLine& line) {
  CLI::App& group =
      AddCommand(line.app, {.name = "credentials",
                            .summary = "Export credentials for a run",
                            .example = "muster credentials export 3f2a --plugin e2e --any-node"});
  group.require_subcommand(1);
  CLI::App& command = AddCommand(
      group,
      {.name = "export",
       .summary = "Export a credential for an agent or a sidecar",
       .details = "The key is generated here and never sent. -o writes the file with mode 0600.\n"
                  "--format json writes the agent's configuration file, env writes shell "
                  "variables with the names that legacy sidecars read, and kubernetes writes a "
                  "Secret and a ConfigMap.\n"
                  "--p12 exports your own certificate instead, in a file that browsers import.",
       .example = "muster credentials export 3f2a --plugin hostfacts --node n1 -o node.json\n"
                  "muster agent --config node.json\n"
                  "muster credentials export 3f2a --plugin e2e --any-node --format kubernetes | "
                  "kubectl apply -f -\n"
                  "muster credentials export --p12 -o me.p12"});
  const auto arguments = std::make_shared<ExportArguments>();
  command.add_option("RUN", arguments->run, "The id of the run, or a unique prefix of it")
      ->type_name("");
  command.add_option("--plugin", arguments->plugin, "The plugin whose results it delivers")
      ->type_name("NAME");
  command.add_option("--node", arguments->node, "The node; \"global\" for a plugin that runs once")
      ->type_name("NAME");
  command.add_flag("--any-node", arguments->any_node,
                   "Valid for every planned node; the results are marked \"node unproven\"");
  command.add_flag("--p12", arguments->pkcs12, "Export your own certificate, for a browser");
  AllowOnly(*command.add_option("--format", arguments->format, "The format (default: json)"),
            "json|env|kubernetes");
  command.add_option("-o,--output", arguments->output, "The file to write (default: stdout)")
      ->type_name(kFileValue);
  AddContextOption(line, command);
  SetAction(line, command,
            [&line, arguments](Console& console) { return Export(console, line, *arguments); });
}

}  // namespace muster::cli

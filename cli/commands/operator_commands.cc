#include "cli/commands/operator_commands.h"

#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/commands/secret_output.h"
#include "cli/exit_code.h"
#include "cli/output/format.h"
#include "cli/output/json_view.h"
#include "cli/output/table.h"
#include "cli/rpc/client.h"
#include "cli/rpc/job_client.h"
#include "cli/rpc/job_reference.h"
#include "cli/rpc/session.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/identity/context.h"
#include "services/common/identity/identity.h"
#include "services/common/identity/key.h"
#include "services/common/identity/signing_request.h"

namespace muster::cli {
namespace {

struct OperatorArguments {
  std::string name;
  std::string reason;
  std::string output;
};

// Adds an operator and returns its context. The key is generated here and never sent.
absl::StatusOr<OperatorContext> NewContext(Client& client, const std::string& name) {
  ASSIGN_OR_RETURN(const auto key, PrivateKey::Generate());
  ASSIGN_OR_RETURN(const auto csr, CreateSigningRequest(key));
  v1::AddOperatorRequest request;
  request.set_name(name);
  request.set_csr_pem(csr);
  ASSIGN_OR_RETURN(const auto issued, client.AddOperator(request));
  ASSIGN_OR_RETURN(auto key_pem, key.ToPkcs8Pem());

  ASSIGN_OR_RETURN(const auto identity, ParseOwnIdentity(issued.uri()));

  OperatorContext context;
  context.fleet = identity.fleet;
  context.aggregator_targets.assign(issued.aggregator_targets().begin(),
                                    issued.aggregator_targets().end());
  context.status_targets.assign(issued.status_targets().begin(), issued.status_targets().end());
  context.gateway_urls.assign(issued.gateway_urls().begin(), issued.gateway_urls().end());
  context.relay_targets.assign(issued.relay_targets().begin(), issued.relay_targets().end());
  context.jobs_targets.assign(issued.jobs_targets().begin(), issued.jobs_targets().end());
  context.fleet_ca_pem = issued.fleet_ca_pem();
  context.certificate_chain_pem = issued.certificate_chain_pem();
  context.private_key_pem = std::move(key_pem);
  return context;
}

absl::StatusOr<int> AddOperator(Console& console, const CommandLine& line,
                                const OperatorArguments& arguments) {
  ASSIGN_OR_RETURN(const auto client, Connect(line.context_file));
  RETURN_IF_ERROR(CheckNewSecretOutput("--output", arguments.output));
  ASSIGN_OR_RETURN(const auto known, client->ListOperators());
  const bool exists =
      std::any_of(known.operators().begin(), known.operators().end(),
                  [&](const v1::Operator& person) { return person.name() == arguments.name; });
  ASSIGN_OR_RETURN(const auto context, NewContext(*client, arguments.name));
  const bool to_stdout = arguments.output.empty() || arguments.output == "-";
  RETURN_IF_ERROR(WriteSecretOutput(console, arguments.output, ContextToJson(context).view()));
  PrintMessage(
      console,
      absl::StrCat("Operator ", arguments.name,
                   exists ? " exists: this is another context of the same operator" : " is added",
                   ". The holder of ", to_stdout ? "this output" : arguments.output,
                   " is that operator: transfer it securely.\n"
                   "Use it with --context FILE or $MUSTER_CONTEXT."));
  return kExitOk;
}

// Prints which command ends the jobs that the revoked operator left running.
void PrintRunningJobs(Console& console, const OperatorContext& context,
                      const v1::Operator& person) {
  if (context.relay_targets.empty()) return;
  JobClient client(context);
  const auto jobs = ListRunningJobs(client, person.uri());
  const std::string cancel = absl::StrCat("muster job cancel --by ", person.name());
  if (!jobs.ok()) {
    PrintMessage(console, absl::StrCat("The root relay does not name the operator's running jobs (",
                                       Printable(ToStd(jobs.status().message())),
                                       "). Cancel them when it answers: ", cancel));
  } else if (!jobs->empty()) {
    PrintMessage(console, absl::StrCat(jobs->size(), " of the operator's jobs still ",
                                       jobs->size() == 1 ? "runs" : "run", ". Cancel ",
                                       jobs->size() == 1 ? "it: " : "them: ", cancel));
  }
}

absl::StatusOr<int> RevokeOperator(Console& console, const CommandLine& line,
                                   const OperatorArguments& arguments) {
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  Client client(context);
  v1::RevokeOperatorRequest request;
  request.set_name(arguments.name);
  request.set_reason(arguments.reason);
  ASSIGN_OR_RETURN(const auto person, client.RevokeOperator(request));
  if (line.json) console.out << Dump(ToJson(person));
  PrintMessage(console, absl::StrCat("Operator ", arguments.name, " is revoked permanently."));
  PrintRunningJobs(console, context, person);
  return kExitOk;
}

absl::StatusOr<int> ListOperators(Console& console, const CommandLine& line) {
  ASSIGN_OR_RETURN(const auto client, Connect(line.context_file));
  ASSIGN_OR_RETURN(const auto list, client->ListOperators());
  if (line.json) {
    Json json = Json::array();
    for (const v1::Operator& person : list.operators()) json.push_back(ToJson(person));
    console.out << Dump(json);
    return kExitOk;
  }
  Table table({{"NAME"}, {"STATE"}, {"ADDED"}, {"CERTIFICATE EXPIRES"}});
  const auto time = [](const google::protobuf::Timestamp& time) {
    return HumanTime(FromProto(time), absl::Now());
  };
  for (const v1::Operator& person : list.operators()) {
    table.AddRow({person.name(), person.revoked() ? "revoked" : "active", time(person.issue_time()),
                  time(person.expire_time())});
  }
  console.out << table.Render(console.width);
  return kExitOk;
}

void AddAddCommand(CommandLine& line, CLI::App& group) {
  CLI::App& command = AddCommand(
      group,
      {.name = "add",
       .summary = "Add an operator and print the context file",
       .details = "The key is generated here. The file is a secret: -o writes it with mode 0600.",
       .example = "muster operator add alice -o alice.json\n"
                  "muster runs --context alice.json"});
  const auto arguments = std::make_shared<OperatorArguments>();
  command.add_option("NAME", arguments->name, "The operator's name")->required()->type_name("");
  command.add_option("-o,--output", arguments->output, "The file to write (default: stdout)")
      ->type_name(kFileValue);
  AddContextOption(line, command);
  SetAction(line, command, [&line, arguments](Console& console) {
    return AddOperator(console, line, *arguments);
  });
}

void AddRevokeCommand(CommandLine& line, CLI::App& group) {
  CLI::App& command = AddCommand(
      group, {.name = "revoke",
              .summary = "Revoke an operator",
              .details = "This cannot be undone, and the name cannot be used again. Jobs "
                         "that run continue until `muster job cancel --by NAME`.",
              .example = "muster operator revoke alice --reason \"laptop was stolen\""});
  const auto arguments = std::make_shared<OperatorArguments>();
  command.add_option("NAME", arguments->name, "The operator's name")->required()->type_name("");
  command.add_option("--reason", arguments->reason, "The reason, stored in the audit log")
      ->type_name(kTextValue);
  AddJsonOption(line, command);
  AddContextOption(line, command);
  SetAction(line, command, [&line, arguments](Console& console) {
    return RevokeOperator(console, line, *arguments);
  });
}

}  // namespace

void AddOperatorCommands(CommandLine& line) {
  CLI::App& group = AddCommand(line.app, {.name = "operator",
                                          .summary = "Add, list and revoke operators",
                                          .example = "muster operator list"});
  group.require_subcommand(1);
  AddAddCommand(line, group);
  AddRevokeCommand(line, group);
  CLI::App& list = AddCommand(
      group,
      {.name = "list", .summary = "List the operators", .example = "muster operator list --json"});
  AddJsonOption(line, list);
  AddContextOption(line, list);
  SetAction(line, list, [&line](Console& console) { return ListOperators(console, line); });
}

}  // namespace muster::cli

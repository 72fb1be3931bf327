#include "cli/commands/audit_commands.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/output/audit_view.h"
#include "cli/output/format.h"
#include "cli/output/json_view.h"
#include "cli/output/table.h"
#include "cli/rpc/client.h"
#include "cli/rpc/run_reference.h"
#include "cli/rpc/session.h"
#include "services/common/base/status_macros.h"
#include "services/common/rpc/proto_time.h"

namespace muster::cli {
namespace {

constexpr int kMaxPage = 1'000;
constexpr absl::Duration kFollowPause = absl::Seconds(1);

struct AuditArguments {
  std::string run;
  std::string actor;
  std::string subject;
  std::vector<std::string> kinds;
  std::string since;
  int limit = 20;
  bool follow = false;
};

// Returns the time that `text` names: a duration before now, or a time in RFC 3339.
absl::StatusOr<absl::Time> ParseSince(const std::string& text) {
  if (const auto age = DurationArgument(text); age.ok()) return absl::Now() - *age;
  absl::Time time;
  std::string ignored;
  if (absl::ParseTime(absl::RFC3339_full, text, &time, &ignored) ||
      absl::ParseTime("%Y-%m-%d", text, &time, &ignored)) {
    return time;
  }
  return UsageError(absl::StrCat("--since: \"", Printable(text), "\" is not a time"),
                    "Write a time in UTC, such as 2026-11-21 or 2026-11-21T13:00:00Z, or the time "
                    "before now, such as 90m or 2d.");
}

absl::StatusOr<v1::ListAuditRecordsRequest> MakeRequest(Client& client,
                                                        const OperatorContext& context,
                                                        const AuditArguments& arguments) {
  v1::ListAuditRecordsRequest request;
  if (!arguments.run.empty()) {
    ASSIGN_OR_RETURN(const auto run, ResolveRun(client, arguments.run));
    request.set_run(run);
  }
  if (!arguments.actor.empty()) request.set_actor(ActorUri(context.fleet, arguments.actor));
  if (!arguments.subject.empty()) {
    request.set_subject(AuditSubject(context.fleet, arguments.subject));
    const auto kind = AuditKindOfSubject(arguments.subject);
    if (kind && arguments.kinds.empty()) request.add_kinds(*kind);
  }
  for (const std::string& word : arguments.kinds) {
    const auto kind = AuditKindOf(word);
    if (!kind) {
      return UsageError(absl::StrCat("--kind: \"", Printable(word), "\" is not a kind"),
                        absl::StrCat("Use one of ", AuditKindWords(), "."));
    }
    request.add_kinds(*kind);
  }
  if (!arguments.since.empty()) {
    ASSIGN_OR_RETURN(const auto since, ParseSince(arguments.since));
    ToProto(since, request.mutable_since());
  }
  return request;
}

// Returns up to `limit` records that match, newest first.
absl::StatusOr<std::vector<v1::AuditRecord>> ListNewest(Client& client,
                                                        v1::ListAuditRecordsRequest request,
                                                        int limit, bool* has_older) {
  std::vector<v1::AuditRecord> records;
  request.set_newest_first(true);
  do {
    request.set_page_size(std::min(limit - static_cast<int>(records.size()), kMaxPage));
    ASSIGN_OR_RETURN(const auto page, client.ListAuditRecords(request));
    records.insert(records.end(), page.records().begin(), page.records().end());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty() && static_cast<int>(records.size()) < limit);
  *has_older = !request.page_token().empty();
  return records;
}

std::string RecordsTable(const std::vector<v1::AuditRecord>& records, const std::string& fleet,
                         int width) {
  Table table({{"TIME"}, {"KIND"}, {"ACTOR"}, {"ABOUT"}, {"DETAIL"}});
  for (const v1::AuditRecord& record : records) {
    table.AddRow(AuditCells(record, fleet, absl::Now()));
  }
  return table.Render(width);
}

// Prints the records with a higher sequence than those before, one on each line, until the user
// interrupts.
absl::StatusOr<int> FollowRecords(Console& console, const CommandLine& line, Client& client,
                                  v1::ListAuditRecordsRequest request, const std::string& fleet,
                                  const std::vector<v1::AuditRecord>& newest) {
  int64_t newest_sequence = 0;
  const auto print = [&](const v1::AuditRecord& record) {
    newest_sequence = std::max(newest_sequence, record.sequence());
    console.out << (line.json ? Dump(ToJson(record))
                              : AuditLine(record, fleet, absl::Now()) + "\n");
  };
  std::for_each(newest.rbegin(), newest.rend(), print);
  console.out.flush();
  request.set_page_size(kMaxPage);
  while (console.out.good() && SleepUnlessInterrupted(kFollowPause)) {
    request.clear_page_token();
    request.set_after_sequence(newest_sequence);
    do {
      const auto page = client.ListAuditRecords(request);
      if (Interrupted()) return kExitInterrupted;
      if (!page.ok()) return page.status();
      std::for_each(page->records().begin(), page->records().end(), print);
      request.set_page_token(page->next_page_token());
    } while (!request.page_token().empty());
    console.out.flush();
  }
  return kExitInterrupted;
}

absl::StatusOr<int> ShowAudit(Console& console, const CommandLine& line,
                              const AuditArguments& arguments) {
  if (arguments.follow) CatchInterrupts();
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  Client client(context);
  ASSIGN_OR_RETURN(const auto request, MakeRequest(client, context, arguments));
  bool has_older = false;
  ASSIGN_OR_RETURN(const auto records, ListNewest(client, request, arguments.limit, &has_older));
  if (arguments.follow) {
    return FollowRecords(console, line, client, request, context.fleet, records);
  }
  if (line.json) {
    Json list = Json::array();
    for (const v1::AuditRecord& record : records) list.push_back(ToJson(record));
    console.out << Dump(list);
  } else if (records.empty()) {
    PrintMessage(
        console,
        arguments.subject.empty()
            ? "No audit record matches."
            : "No audit record matches. A name alone is an operator; a node is node/NAME, a secret "
              "secret/NAME.");
  } else {
    console.out << RecordsTable(records, context.fleet, console.width);
  }
  if (has_older) {
    PrintMessage(console, absl::StrCat("List older records with --limit ", arguments.limit * 10));
  }
  return kExitOk;
}

}  // namespace

void AddAuditCommand(CommandLine& line) {
  CLI::App& command = AddCommand(
      line.app,
      {.name = "audit",
       .summary = "List the audit records, newest first",
       .details = absl::StrCat(
           "The aggregator records who was issued a certificate, revoked, joined or changed; each "
           "run that was created, ended or deleted; each job with its command; each refused "
           "delivery; and each change of templates, deployments, the baseline of conformance, "
           "secrets and workspaces. An operator that called through a gateway is shown as NAME via "
           "service/gateway/GATEWAY: the gateway vouches for it.\n"
           "Kinds: ",
           AuditKindWords(),
           ".\nWith --follow, prints the oldest of the listed records first and then each new "
           "record, with --json one on each line."),
       .example = "muster audit --since 1d --kind refused,conflict\n"
                  "muster audit --actor alice\n"
                  "muster audit --subject bob --kind credential,revocation\n"
                  "muster audit --subject secret/prod/db\n"
                  "muster audit --run 3f2a0123456789ab --json"});
  const auto arguments = std::make_shared<AuditArguments>();
  command
      .add_option("--run", arguments->run,
                  "Only records about this run: its id, or a unique prefix of it")
      ->type_name("RUN");
  command
      .add_option("--actor", arguments->actor,
                  "Only records of this identity: an operator's name, a name such as node/n1, or a "
                  "URI")
      ->type_name("NAME");
  command
      .add_option(
          "--subject", arguments->subject,
          "Only records of certificates that were issued to this identity, of its joins and "
          "revocation, or of this object: a name as for --actor, a certificate (ISSUER:SERIAL), "
          "the id of a job or a deployment, or template/NAME@VERSION, conformance/NODE, "
          "secret/NAME or workspace/NAME")
      ->type_name("NAME");
  command.add_option("--kind", arguments->kinds, "Only records of these kinds")
      ->type_name("KIND,...")
      ->delimiter(',');
  command
      .add_option(
          "--since", arguments->since,
          "Only records since this time: 2026-11-21T13:00:00Z, 2026-11-21, or 2h before now")
      ->type_name("TIME");
  AllowRange(
      *command
           .add_option("--limit", arguments->limit, "The maximum number of records (default: 20)")
           ->type_name("NUMBER"),
      1, 1'000'000);
  command.add_flag("-f,--follow", arguments->follow, "Follow the log until interrupted");
  AddJsonOption(line, command);
  AddContextOption(line, command);
  SetAction(line, command,
            [&line, arguments](Console& console) { return ShowAudit(console, line, *arguments); });
}

}  // namespace muster::cli

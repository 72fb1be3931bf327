#include "cli/commands/dashboard_commands.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cli/exit_code.h"
#include "cli/output/json_view.h"
#include "cli/rpc/https_client.h"
#include "cli/rpc/session.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/cli.h"

namespace muster::cli {
namespace {

constexpr char kPath[] = "/api/v1/dashboard-links";

// Asks one gateway after another until one is reachable.
absl::StatusOr<HttpsAnswer> RequestLink(const OperatorContext& context) {
  HttpsClient https(context.fleet_ca_pem, context.certificate_chain_pem,
                    context.private_key_pem.view(), HttpsClient::GatewayOf{context.fleet});
  absl::StatusOr<HttpsAnswer> answer = errors::NoGateway();
  for (const std::string& gateway : context.gateway_urls) {
    answer = https.Post(absl::StrCat(absl::StripSuffix(gateway, "/"), kPath));
    if (!absl::IsUnavailable(answer.status())) break;
  }
  return answer;
}

// A link is printed, and a shell may pass it to a browser.
bool IsLink(const Json& url) {
  if (!url.is_string()) return false;
  const auto text = url.get<std::string>();
  return absl::StartsWith(text, "https://") && std::ranges::all_of(text, absl::ascii_isgraph);
}

absl::StatusOr<int> PrintLink(Console& console, const CommandLine& line) {
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  ASSIGN_OR_RETURN(const auto answer, RequestLink(context));
  const Json json = Json::parse(answer.body, nullptr, false);
  if (!json.is_object() || !IsLink(json.value("url", Json())) ||
      !json.value("expires_in_seconds", Json()).is_number_unsigned()) {
    return errors::InvalidGatewayAnswer();
  }
  console.out << (line.json ? Dump(json) : json["url"].get<std::string>() + "\n");
  PrintMessage(console,
               absl::StrCat("Open the link within ", json["expires_in_seconds"].get<uint64_t>(),
                            " seconds. It can be used once."));
  return kExitOk;
}

}  // namespace

void AddDashboardCommand(CommandLine& line) {
  CLI::App& command = AddCommand(
      line.app,
      {.name = "dashboard",
       .summary = "Print a link that opens the dashboard in a browser",
       .details = "The link gives its first user read access. The browser must trust the fleet's "
                  "root certificate.",
       .example = "muster dashboard\nxdg-open \"$(muster dashboard)\""});
  AddJsonOption(line, command);
  AddContextOption(line, command);
  SetAction(line, command, [&line](Console& console) { return PrintLink(console, line); });
}

}  // namespace muster::cli

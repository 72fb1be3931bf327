#include "cli/rpc/run_reference.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/exit_code.h"
#include "cli/output/format.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/cli.h"
#include "services/common/identity/identity.h"

namespace muster::cli {
namespace {

constexpr int kPage = 1000;
constexpr size_t kMatchesShown = 5;

absl::StatusOr<std::string> FindNewest(Client& client) {
  v1::ListRunsRequest request;
  request.set_page_size(1);
  ASSIGN_OR_RETURN(const auto runs, client.ListRuns(request));
  if (runs.runs().empty()) return FromService(errors::NoRuns(), "the list of runs");
  return runs.runs(0).id();
}

// Returns the ids that begin with `prefix`; only a few if there are several.
absl::StatusOr<std::vector<std::string>> FindMatches(Client& client, const std::string& prefix) {
  std::vector<std::string> ids;
  v1::ListRunsRequest request;
  request.set_page_size(kPage);
  do {
    ASSIGN_OR_RETURN(const auto page, client.ListRuns(request));
    for (const v1::Run& run : page.runs()) {
      if (absl::StartsWith(run.id(), prefix)) ids.push_back(run.id());
    }
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty() && ids.size() <= kMatchesShown);
  return ids;
}

}  // namespace

absl::Status RunNotFoundToNoRuns(const absl::Status& status) {
  return absl::IsNotFound(status) ? FromService(errors::NoRuns(), SubjectOf(status)) : status;
}

absl::StatusOr<std::string> ResolveRun(Client& client, const std::string& text) {
  if (IsRunId(text)) return text;
  if (text.empty() || text.size() > 16 ||
      text.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return UsageError(
        absl::StrCat("\"", Printable(text), "\" is not a run: an id is 16 hex digits"),
        "List the runs with `muster runs`. A unique prefix of an id is enough.");
  }
  ASSIGN_OR_RETURN(const auto ids, FindMatches(client, text));
  if (ids.size() == 1) return ids.front();
  if (ids.empty()) {
    return FromService(errors::NoRunBeginsWith(text), "the list of runs");
  }
  return UsageError(
      absl::StrCat(
          "several runs begin with ", text, ": ",
          absl::StrJoin(ids.begin(), ids.begin() + std::min(ids.size(), kMatchesShown), ", ")),
      "Give more digits of the id.");
}

absl::StatusOr<std::string> ResolveRunOrNewest(Client& client, const std::string& text) {
  return text.empty() ? FindNewest(client) : ResolveRun(client, text);
}

}  // namespace muster::cli

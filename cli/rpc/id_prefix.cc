#include "cli/rpc/id_prefix.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/exit_code.h"
#include "cli/output/format.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"

namespace muster::cli {
namespace {

constexpr size_t kMatchesShown = 5;

}  // namespace

absl::StatusOr<std::string> ResolveId(
    const IdKind& kind, const std::string& text, const absl::Status& none,
    absl::FunctionRef<absl::StatusOr<IdPage>(const std::string& token)> list) {
  if (text.empty() || text.size() > kind.size ||
      text.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return UsageError(absl::StrCat("\"", Printable(text), "\" is not a ", ToAbsl(kind.name),
                                   ": an id is ", kind.size, " hex digits"),
                      absl::StrCat("List the ", ToAbsl(kind.plural), " with `",
                                   ToAbsl(kind.command), "`. A unique prefix of an id is enough."));
  }
  if (text.size() == kind.size) return text;
  std::vector<std::string> matches;  // only a few if there are several
  IdPage page;
  do {
    ASSIGN_OR_RETURN(page, list(page.next));
    for (std::string& id : page.ids) {
      if (absl::StartsWith(id, text)) matches.push_back(std::move(id));
    }
  } while (!page.next.empty() && matches.size() <= kMatchesShown);
  if (matches.size() == 1) return matches.front();
  if (matches.empty()) return none;
  return SeveralIdsError(kind, text, std::move(matches));
}

absl::Status SeveralIdsError(const IdKind& kind, const std::string& text,
                             std::vector<std::string> ids) {
  ids.resize(std::min(ids.size(), kMatchesShown));
  return UsageError(absl::StrCat("several ", ToAbsl(kind.plural), " begin with ", Printable(text),
                                 ": ", absl::StrJoin(ids, ", ")),
                    "Give more digits of the id.");
}

}  // namespace muster::cli

// Finds the object that an argument names by its id or a prefix of it.
#ifndef MUSTER_CLI_RPC_ID_PREFIX_H_
#define MUSTER_CLI_RPC_ID_PREFIX_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::cli {

// The kind of an object whose ids are `size` lower-case hex digits, with its words in messages.
struct IdKind {
  std::string_view name;     // "run"
  std::string_view plural;   // "runs"
  std::string_view command;  // lists all: "muster runs"
  size_t size = 0;
};

inline constexpr IdKind kRunIds = {"run", "runs", "muster runs", 16};

struct IdPage {
  std::vector<std::string> ids;
  std::string next;  // the token of the next page; empty: there is none
};

// Returns `text` if it is an id, otherwise the only listed id that begins with it. Fails with a
// usage error if it cannot be a prefix or is one of several ids, and with `none` if no id begins
// with it. Calls `list` with the token of each page, and fails as it does.
absl::StatusOr<std::string> ResolveId(
    const IdKind& kind, const std::string& text, const absl::Status& none,
    absl::FunctionRef<absl::StatusOr<IdPage>(const std::string& token)> list);

// Returns the usage error for a prefix of several ids.
absl::Status SeveralIdsError(const IdKind& kind, const std::string& text,
                             std::vector<std::string> ids);

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_ID_PREFIX_H_

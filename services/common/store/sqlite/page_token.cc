#include "services/common/store/sqlite/page_token.h"

#include "services/common/errors/runs.h"

namespace muster::sqlite {

absl::StatusOr<PageToken> ParsePageToken(std::string_view token) {
  const size_t slash = token.find('/');
  if (slash == std::string_view::npos) return errors::InvalidPageToken();
  return PageToken{token.substr(0, slash), token.substr(slash + 1)};
}

}  // namespace muster::sqlite

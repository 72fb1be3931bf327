// The tokens of pages: the position of the last row of a page.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_PAGE_TOKEN_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_PAGE_TOKEN_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace muster::sqlite {

// The two columns that order a listing. `first` contains no slash.
struct PageToken {
  std::string_view first;
  std::string_view second;
};

template <typename First>
std::string MakePageToken(const First& first, const std::string& second) {
  return absl::StrCat(first, "/", second);
}

// Returns parts of `token`. INVALID_ARGUMENT (INVALID_PAGE_TOKEN).
absl::StatusOr<PageToken> ParsePageToken(std::string_view token);

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_PAGE_TOKEN_H_

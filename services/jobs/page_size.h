// The sizes of pages.
#ifndef MUSTER_SERVICES_JOBS_PAGE_SIZE_H_
#define MUSTER_SERVICES_JOBS_PAGE_SIZE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "services/common/errors/runs.h"

namespace muster {

inline constexpr int kMaxPage = 1'000;
inline constexpr size_t kUsualPage = 100;
// The bytes that are read for a page. A single row may have more.
inline constexpr size_t kMaxPageBytes = size_t{1} << 20;

// Returns the size that a request wants, or `usual` for 0. INVALID_ARGUMENT (INVALID_PAGE_SIZE).
inline absl::StatusOr<size_t> PageSize(int32_t wanted, size_t usual = kUsualPage) {
  if (wanted < 0 || wanted > kMaxPage) return errors::InvalidPageSize(kMaxPage);
  return wanted > 0 ? static_cast<size_t>(wanted) : usual;
}

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_PAGE_SIZE_H_

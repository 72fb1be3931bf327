// Macros that return an error to the caller.
//
//   RETURN_IF_ERROR(file->Sync());
//   ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
//
// Both work in functions and lambdas that return absl::Status or absl::StatusOr, and evaluate their
// expression once. An error is returned as it is; Annotate (error.h) adds context to one.
#ifndef MUSTER_SERVICES_COMMON_BASE_STATUS_MACROS_H_
#define MUSTER_SERVICES_COMMON_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::internal {

// Returns the status of what RETURN_IF_ERROR was given.
inline absl::Status StatusOf(absl::Status status) { return status; }
template <typename T>
absl::Status StatusOf(absl::StatusOr<T>&& result) {
  return std::move(result).status();
}
template <typename T>
absl::Status StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

}  // namespace muster::internal

// Returns the error of an expression that is an absl::Status or absl::StatusOr. The value of a
// StatusOr is destroyed.
#define RETURN_IF_ERROR(...)                                                     \
  do {                                                                           \
    if (absl::Status muster_status_ = ::muster::internal::StatusOf(__VA_ARGS__); \
        !muster_status_.ok()) {                                                  \
      return muster_status_;                                                     \
    }                                                                            \
  } while (false)

// Declares or assigns `lhs` from the value of an absl::StatusOr, or returns its error. It expands
// to several statements: the body of an `if` or a loop needs braces around it. A type with a comma
// in it needs `auto` or a declaration before.
#define ASSIGN_OR_RETURN(lhs, ...) \
  MUSTER_ASSIGN_OR_RETURN_(MUSTER_JOIN_(muster_result_, __COUNTER__), lhs, __VA_ARGS__)

#define MUSTER_ASSIGN_OR_RETURN_(result, lhs, ...)     \
  auto result = (__VA_ARGS__);                         \
  if (!result.ok()) return std::move(result).status(); \
  lhs = *std::move(result)

#define MUSTER_JOIN_(a, b) MUSTER_JOIN_NOW_(a, b)
#define MUSTER_JOIN_NOW_(a, b) a##b

#endif  // MUSTER_SERVICES_COMMON_BASE_STATUS_MACROS_H_

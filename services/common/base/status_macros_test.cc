#include "services/common/base/status_macros.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace muster {
namespace {

absl::Status Bad() { return absl::NotFoundError("bad"); }

TEST(ReturnIfErrorTest, AnErrorIsReturned) {
  const auto status = [&]() -> absl::Status {
    RETURN_IF_ERROR(Bad());
    return absl::OkStatus();
  };
  const auto value = [&]() -> absl::StatusOr<int> {
    RETURN_IF_ERROR(Bad());
    return 1;
  };
  const auto deduced = [&] {
    RETURN_IF_ERROR(Bad());
    return absl::OkStatus();
  };
  EXPECT_EQ(status(), Bad());
  EXPECT_EQ(value().status(), Bad());
  EXPECT_EQ(deduced(), Bad());
}

TEST(ReturnIfErrorTest, SuccessGoesOnAndTheExpressionIsEvaluatedOnce) {
  int calls = 0;
  const auto ok = [&] {
    ++calls;
    return absl::OkStatus();
  };
  const auto function = [&]() -> absl::StatusOr<int> {
    RETURN_IF_ERROR(ok());
    return 7;
  };
  EXPECT_EQ(function().value(), 7);
  EXPECT_EQ(calls, 1);
}

TEST(ReturnIfErrorTest, AStatusOrIsAccepted) {
  const auto function = [](const absl::StatusOr<int>& result) -> absl::Status {
    RETURN_IF_ERROR(result);
    RETURN_IF_ERROR(absl::StatusOr<std::unique_ptr<int>>(std::make_unique<int>(1)));
    RETURN_IF_ERROR(absl::StatusOr<std::string>(absl::AbortedError("second")));
    return absl::OkStatus();
  };
  EXPECT_EQ(function(Bad()), Bad());
  EXPECT_EQ(function(1), absl::AbortedError("second"));
}

TEST(ReturnIfErrorTest, TheBodyOfAnIfWithElseNeedsNoBraces) {
  const auto function = [](bool first) -> absl::Status {
    if (first)
      RETURN_IF_ERROR(Bad());
    else
      RETURN_IF_ERROR(absl::AbortedError("else"));
    return absl::OkStatus();
  };
  EXPECT_EQ(function(true), Bad());
  EXPECT_EQ(function(false), absl::AbortedError("else"));
}

TEST(ReturnIfErrorTest, AnExpressionMayHoldCommasAndTheMacroAgain) {
  const auto function = []() -> absl::Status {
    RETURN_IF_ERROR([]() -> absl::Status {
      const auto values = std::pair<int, int>{1, 2};
      if (values.first == values.second) return Bad();
      RETURN_IF_ERROR(Bad());
      return absl::OkStatus();
    }());
    return absl::OkStatus();
  };
  EXPECT_EQ(function(), Bad());
}

TEST(AssignOrReturnTest, AnErrorIsReturned) {
  const absl::StatusOr<int> bad = Bad();
  const auto status = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const int n, bad);
    return absl::InternalError(std::to_string(n));
  };
  const auto value = [&]() -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(const int n, bad);
    return std::to_string(n);
  };
  EXPECT_EQ(status(), Bad());
  EXPECT_EQ(value().status(), Bad());
}

TEST(AssignOrReturnTest, TheValueIsDeclaredOrAssigned) {
  int calls = 0;
  const auto next = [&]() -> absl::StatusOr<int> { return ++calls; };
  const auto function = [&]() -> absl::StatusOr<int> {
    ASSIGN_OR_RETURN(const auto first, next());
    ASSIGN_OR_RETURN(auto second, next());
    int third = 0;
    ASSIGN_OR_RETURN(third, next());
    std::pair<int, int> pair;
    ASSIGN_OR_RETURN(pair.second, next());
    ASSIGN_OR_RETURN(const int& reference, next());
    return first * 10000 + second * 1000 + third * 100 + pair.second * 10 + reference;
  };
  EXPECT_EQ(function().value(), 12345);
  EXPECT_EQ(calls, 5);
}

TEST(AssignOrReturnTest, AValueThatOnlyMovesIsMoved) {
  const auto make = []() -> absl::StatusOr<std::unique_ptr<int>> {
    return std::make_unique<int>(3);
  };
  const auto function = [&]() -> absl::StatusOr<std::unique_ptr<int>> {
    ASSIGN_OR_RETURN(auto first, make());
    std::unique_ptr<int> second;
    ASSIGN_OR_RETURN(second, make());
    *first += *second;
    return first;
  };
  EXPECT_EQ(**function(), 6);
}

TEST(AssignOrReturnTest, AnExpressionMayHoldTheMacroAgain) {
  const auto function = []() -> absl::StatusOr<int> {
    ASSIGN_OR_RETURN(const int outer, []() -> absl::StatusOr<int> {
      ASSIGN_OR_RETURN(const int inner, absl::StatusOr<int>(4));
      return inner + 1;
    }());
    return outer;
  };
  EXPECT_EQ(function().value(), 5);
}

}  // namespace
}  // namespace muster

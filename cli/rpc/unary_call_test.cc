#include "cli/rpc/unary_call.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "services/common/base/error.h"

namespace muster::cli {
namespace {

// A service that answers no call.
struct SilentStub {
  grpc::Status Get(grpc::ClientContext* context, const std::string&, std::string*) {
    ++calls;
    const auto now = std::chrono::system_clock::now();
    EXPECT_LE(context->deadline(), now + std::chrono::seconds(20));
    EXPECT_GT(context->deadline(), now + std::chrono::seconds(10));
    return {code, message};
  }

  grpc::StatusCode code;
  std::string message = "no answer";
  int calls = 0;
};

TEST(CallUnaryTest, CallHas20SecondsAndIsRepeatedForTwo) {
  SilentStub late = {grpc::StatusCode::DEADLINE_EXCEEDED};
  EXPECT_EQ(ReasonOf(CallUnary(late, &SilentStub::Get, std::string(), "x").status()), "NO_ANSWER");
  EXPECT_EQ(late.calls, 1);
  // Every 250 ms.
  SilentStub away = {grpc::StatusCode::UNAVAILABLE};
  EXPECT_FALSE(CallUnary(away, &SilentStub::Get, std::string(), "x").ok());
  EXPECT_GT(away.calls, 1);
  EXPECT_LE(away.calls, 9);
}

}  // namespace
}  // namespace muster::cli

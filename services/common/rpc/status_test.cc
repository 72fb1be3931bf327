#include "services/common/rpc/status.h"

#include <string>

#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

TEST(StatusTest, ReasonNextStepAndRetryTimeSurviveTheWire) {
  const absl::Status sent = WithRetryAfter(
      MakeError(absl::StatusCode::kResourceExhausted, "DISK_FULL", "no space left", "Free some."),
      absl::Milliseconds(1250));
  const absl::Status received = FromGrpc(ToGrpc(sent));
  EXPECT_EQ(received.code(), sent.code());
  EXPECT_EQ(received.message(), sent.message());
  EXPECT_EQ(ReasonOf(received), "DISK_FULL");
  EXPECT_EQ(NextStepOf(received), "Free some.");
  EXPECT_EQ(RetryAfterOf(received), absl::Milliseconds(1250));
}

TEST(StatusTest, NewestAttemptSurvivesTheWire) {
  const absl::Status refused = MakeError(absl::StatusCode::kAborted, "TAKEN_OVER", "old", "");
  EXPECT_EQ(NewestAttemptOf(FromGrpc(ToGrpc(WithNewestAttempt(refused, 7)))), 7);
  EXPECT_EQ(NewestAttemptOf(FromGrpc(ToGrpc(refused))), std::nullopt);
}

TEST(StatusTest, LongMessagesAreCutBetweenCharacters) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "\xC3\xA9";
  const grpc::Status wire = ToGrpc(MakeError(absl::StatusCode::kInternal, "X", text, ""));
  EXPECT_LE(wire.error_message().size(), 1024u);
  EXPECT_EQ(wire.error_message().substr(wire.error_message().size() - 5), "\xC3\xA9...");
}

TEST(StatusTest, TextThatIsNotUtf8LosesNoDetail) {
  const absl::Status sent = MakeError(absl::StatusCode::kNotFound, "FILE_NOT_FOUND",
                                      "caf\xe9 not found", "Look at \xe9.");
  const absl::Status received = FromGrpc(ToGrpc(sent));
  EXPECT_EQ(ReasonOf(received), "FILE_NOT_FOUND");
  EXPECT_EQ(received.message(), "caf\xef\xbf\xbd not found");
  EXPECT_EQ(NextStepOf(received), "Look at \xef\xbf\xbd.");
}

TEST(StatusTest, AFailedConnectionSaysWhatToCheck) {
  const absl::Status status =
      FromGrpc(grpc::Status(grpc::StatusCode::UNAVAILABLE, "Socket closed"));
  EXPECT_EQ(ReasonOf(status), "UNREACHABLE");
  EXPECT_FALSE(NextStepOf(status).empty());
}

TEST(StatusTest, OkStaysOk) {
  EXPECT_TRUE(ToGrpc(absl::OkStatus()).ok());
  EXPECT_TRUE(FromGrpc(grpc::Status::OK).ok());
}

}  // namespace
}  // namespace muster

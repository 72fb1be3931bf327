#include "cli/output/console.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <sstream>

#include "cli/exit_code.h"
#include "services/common/base/error.h"
#include "services/common/base/unique_fd.h"

namespace muster::cli {
namespace {

std::string PrintedError(const absl::Status& status) {
  std::ostringstream out;
  std::ostringstream err;
  Console console{.out = out, .err = err};
  PrintError(console, status, "muster cancel");
  EXPECT_EQ(out.str(), "");
  return err.str();
}

TEST(PrintErrorTest, ErrorWithReasonPrintsSubjectAndNextStep) {
  EXPECT_EQ(PrintedError(FromService(MakeError(absl::StatusCode::kNotFound, "RUN_NOT_FOUND",
                                               "there is no run 3f2a", "`muster runs` lists them."),
                                     "run 3f2a at host:7440")),
            "error: there is no run 3f2a (RUN_NOT_FOUND)\n"
            "   on: run 3f2a at host:7440\n"
            " next: `muster runs` lists them.\n");
}

TEST(PrintErrorTest, StatusWithoutDetailsPrintsDefaults) {
  EXPECT_EQ(PrintedError(absl::UnavailableError("connection refused")),
            "error: connection refused\n"
            "   on: muster cancel\n"
            " next: Check that the services are running (`muster up` on their machine) and that "
            "the address in the context file is correct.\n");
  EXPECT_EQ(PrintedError(absl::InternalError("")), "error: INTERNAL\n   on: muster cancel\n");
}

TEST(PrintErrorTest, ControlCharactersAreReplaced) {
  EXPECT_EQ(PrintedError(absl::InternalError("a\x1b[2Jb")),
            "error: a?[2Jb\n   on: muster cancel\n");
}

TEST(PrintMessageTest, ControlCharactersAreReplacedAndLinesKept) {
  std::ostringstream out;
  std::ostringstream err;
  Console console{.out = out, .err = err};
  PrintMessage(console, "\nfirst: a\x1b[2Jb\r\n  second");
  EXPECT_EQ(err.str(), "\nfirst: a?[2Jb?\n  second\n");
  EXPECT_EQ(out.str(), "");
}

TEST(PrintErrorTest, FurtherLinesOfAMessageAreIndented) {
  EXPECT_EQ(PrintedError(MakeError(absl::StatusCode::kInvalidArgument, "INVALID_PLUGIN",
                                   "p.yaml:2: a: unknown field\np.yaml:3: b\r: unknown field",
                                   "Correct it.")),
            "error: p.yaml:2: a: unknown field\n"
            "       p.yaml:3: b?: unknown field (INVALID_PLUGIN)\n"
            "   on: muster cancel\n"
            " next: Correct it.\n");
}

TEST(FinishOutputTest, FailedStreamIsAnError) {
  std::ostringstream out;
  std::ostringstream err;
  Console console{.out = out, .err = err};
  EXPECT_TRUE(FinishOutput(console).ok());
  out.setstate(std::ios::badbit);
  EXPECT_FALSE(FinishOutput(console).ok());
}

TEST(FinishOutputTest, PipeThatWasFoundClosedBeforeIsReportedAsClosed) {
  std::signal(SIGPIPE, SIG_IGN);
  std::array<int, 2> ends = {};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  ::close(ends[0]);
  const UniqueFd writer(ends[1]);
  DescriptorBuffer buffer(writer.get());
  std::ostream out(&buffer);
  std::ostringstream err;
  Console console{.out = out, .err = err, .out_buffer = &buffer};
  out << "a line" << std::flush;
  errno = 0;
  EXPECT_EQ(ReasonOf(FinishOutput(console)), "OUTPUT_CLOSED");
}

}  // namespace
}  // namespace muster::cli

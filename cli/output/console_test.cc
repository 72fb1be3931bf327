#include "cli/output/console.h"

#include <gtest/gtest.h>

#include <sstream>

#include "cli/exit_code.h"
#include "services/common/base/error.h"

namespace muster::cli {
namespace {

std::string Printed(const absl::Status& status) {
  std::ostringstream out;
  std::ostringstream err;
  Console console{.out = out, .err = err};
  PrintError(console, status, "muster cancel");
  EXPECT_EQ(out.str(), "");
  return err.str();
}

TEST(PrintError, WhatToWhatAndWhatNext) {
  EXPECT_EQ(Printed(FromService(MakeError(absl::StatusCode::kNotFound, "RUN_NOT_FOUND",
                                          "there is no run 3f2a", "`muster runs` lists them."),
                                "run 3f2a at host:7440")),
            "error: there is no run 3f2a (RUN_NOT_FOUND)\n"
            "   on: run 3f2a at host:7440\n"
            " next: `muster runs` lists them.\n");
}

TEST(PrintError, ABareStatusStillGetsItsLines) {
  EXPECT_EQ(Printed(absl::UnavailableError("connection refused")),
            "error: connection refused\n"
            "   on: muster cancel\n"
            " next: Check that the services run (`muster up` on their machine) and that the "
            "address in your context file is right.\n");
  EXPECT_EQ(Printed(absl::InternalError("")), "error: INTERNAL\n   on: muster cancel\n");
}

TEST(PrintError, AServiceCannotSteerTheTerminal) {
  EXPECT_EQ(Printed(absl::InternalError("a\x1b[2Jb")), "error: a?[2Jb\n   on: muster cancel\n");
}

TEST(FinishOutput, ALostStreamIsAnError) {
  std::ostringstream out;
  std::ostringstream err;
  Console console{.out = out, .err = err};
  EXPECT_TRUE(FinishOutput(console).ok());
  out.setstate(std::ios::badbit);
  EXPECT_FALSE(FinishOutput(console).ok());
}

}  // namespace
}  // namespace muster::cli

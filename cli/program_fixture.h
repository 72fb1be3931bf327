// Runs the real program in tests.
#ifndef MUSTER_CLI_PROGRAM_FIXTURE_H_
#define MUSTER_CLI_PROGRAM_FIXTURE_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "services/common/base/subprocess.h"

namespace muster::cli {

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

inline Outcome Muster(std::vector<std::string> arguments,
                      std::vector<std::string> environment = {}) {
  arguments.insert(arguments.begin(), "cli/muster");
  environment.push_back("PATH=/usr/bin:/bin");
  for (std::string& setting : AllowListedEnvironment({"TSAN_OPTIONS"})) {
    environment.push_back(std::move(setting));
  }
  auto process = Subprocess::Start({.argv = std::move(arguments),
                                    .environment = std::move(environment),
                                    .out = ChildOutput::Tail(size_t{1} << 20),
                                    .err = ChildOutput::Tail(size_t{1} << 20)});
  EXPECT_TRUE(process.ok()) << process.status();
  const auto end = (*process)->Wait(absl::Minutes(1));
  EXPECT_TRUE(end.has_value());
  return {end->exit_code, (*process)->StdoutTail(), (*process)->StderrTail()};
}

}  // namespace muster::cli

#endif  // MUSTER_CLI_PROGRAM_FIXTURE_H_

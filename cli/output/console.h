// The two streams of the program: stdout for data and nothing else, stderr for everything said to
// a person.
#ifndef MUSTER_CLI_OUTPUT_CONSOLE_H_
#define MUSTER_CLI_OUTPUT_CONSOLE_H_

#include <ostream>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace muster::cli {

// Columns and lines of a terminal; 0 where there is none: never cut anything then.
struct ScreenSize {
  int width = 0;
  int height = 0;
};

// Not thread-safe.
struct Console {
  std::ostream& out;
  std::ostream& err;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  int width = 0;  // of the terminal, 0 where there is none
};

// The size of the program's terminal now: it may have changed.
ScreenSize CurrentScreenSize();

// std::cout and std::cerr as they are connected now.
Console SystemConsole();

// Three lines on stderr: what happened, to what, what to do next. A line without content is left
// out.
void PrintError(Console& console, const absl::Status& status, std::string_view command);

// One line on stderr.
void Say(Console& console, std::string_view message);

// Flushes stdout. An error if not all of the data got out (a full disk, a closed pipe).
absl::Status FinishOutput(Console& console);

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_CONSOLE_H_

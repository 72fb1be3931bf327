// The two streams of the program: data goes to stdout, messages for people to stderr.
#ifndef MUSTER_CLI_OUTPUT_CONSOLE_H_
#define MUSTER_CLI_OUTPUT_CONSOLE_H_

#include <ostream>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "cli/output/descriptor_buffer.h"

namespace muster::cli {

// Columns and lines of a terminal; 0 without a terminal: then nothing is truncated.
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
  int width = 0;  // of the terminal; 0 without one
  bool out_has_color = false;
  bool err_has_color = false;
  const DescriptorBuffer* out_buffer =
      nullptr;  // of `out`; null: the cause of a failure is unknown
};

// Returns the current size of the program's terminal.
ScreenSize CurrentScreenSize();

// Returns the console of the program. Each output on `err` flushes `out` first. Only one console
// may exist, and nothing else may write to std::cout.
Console SystemConsole();

// Sets the colors by the value of --color (color.h).
void SetColor(Console& console, std::string_view choice);

// Prints an error on stderr: the error with its lines, its subject, the next step. Omits a part
// without content.
void PrintError(Console& console, const absl::Status& status, std::string_view command);

// Prints a message of one or more lines on stderr, without the control characters in it (format.h).
void PrintMessage(Console& console, std::string_view message);

// Flushes stdout. Returns an error if a part of the data was not written, now or before: ABORTED
// (OUTPUT_CLOSED) if its reader has closed the pipe, or the error of the disk.
absl::Status FinishOutput(Console& console);

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_CONSOLE_H_

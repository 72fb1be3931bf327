#include "cli/output/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <iostream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/exit_code.h"
#include "cli/output/color.h"
#include "cli/output/format.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"
#include "services/common/errors/cli.h"

namespace muster::cli {
namespace {

// Returns a next step for a status without one, such as a failed connection.
std::string_view DefaultNextStep(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      return "Check that the services are running (`muster up` on their machine) and that the "
             "address in the context file is correct.";
    case absl::StatusCode::kDeadlineExceeded:
      return "Try again. If it fails again, check the logs of the services.";
    case absl::StatusCode::kUnauthenticated:
      return "The certificate may have expired or been revoked: ask another operator for `muster "
             "operator add`.";
    case absl::StatusCode::kUnimplemented:
      return "The service is older than this program: upgrade it.";
    default:
      return "";
  }
}

// Returns the lines of a message without control characters. Further lines are indented, so that
// text of another machine never looks like the subject or the next step.
std::string PrintableLines(std::string_view text) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(ToAbsl(text), '\n', absl::SkipWhitespace())) {
    lines.push_back(Printable(ToStd(line)));
  }
  return absl::StrJoin(lines, "\n       ");
}

}  // namespace

ScreenSize CurrentScreenSize() {
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    struct winsize size = {};
    if (::isatty(fd) == 1 && ::ioctl(fd, TIOCGWINSZ, &size) == 0) {
      return {.width = size.ws_col, .height = size.ws_row};
    }
  }
  return {};
}

Console SystemConsole() {
  static auto& buffer = *new DescriptorBuffer(STDOUT_FILENO);
  static auto& out = *new std::ostream(&buffer);
  std::cerr.tie(&out);
  Console console = {.out = out,
                     .err = std::cerr,
                     .out_is_terminal = ::isatty(STDOUT_FILENO) == 1,
                     .err_is_terminal = ::isatty(STDERR_FILENO) == 1,
                     .width = CurrentScreenSize().width,
                     .out_buffer = &buffer};
  SetColor(console, "auto");
  return console;
}

void SetColor(Console& console, std::string_view choice) {
  console.out_has_color = WantsColor(choice, console.out_is_terminal);
  console.err_has_color = WantsColor(choice, console.err_is_terminal);
}

void PrintError(Console& console, const absl::Status& status, std::string_view command) {
  // Usage errors without a reason are self-explanatory; docs/errors.md lists the other
  // reasons.
  const std::string reason = ReasonOf(status) == "USAGE" ? "" : ReasonOf(status);
  const std::string message = PrintableLines(ToStd(status.message()));
  console.err << (console.err_has_color ? Colored("error:", Color::kBad) : "error:") << " "
              << (message.empty() ? absl::StatusCodeToString(status.code()) : message)
              << (reason.empty() ? "" : absl::StrCat(" (", reason, ")")) << "\n";
  const std::string subject = SubjectOf(status);
  console.err << "   on: " << (subject.empty() ? std::string(command) : Printable(subject)) << "\n";
  const std::string next_step = NextStepOf(status);
  const std::string_view next = next_step.empty() ? DefaultNextStep(status) : next_step;
  if (!next.empty()) console.err << " next: " << Printable(next) << "\n";
}

void PrintMessage(Console& console, std::string_view message) {
  for (const absl::string_view line : absl::StrSplit(ToAbsl(message), '\n')) {
    console.err << Printable(ToStd(line)) << "\n";
  }
}

absl::Status FinishOutput(Console& console) {
  console.out.flush();
  if (console.out.good()) return absl::OkStatus();
  const int cause = console.out_buffer == nullptr ? 0 : console.out_buffer->error();
  if (cause == EPIPE) return errors::OutputClosed();
  return ErrnoError(cause == 0 ? EIO : cause, "write", "standard output");
}

}  // namespace muster::cli

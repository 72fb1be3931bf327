#include "cli/output/live_view.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/output/format.h"
#include "services/common/base/strings.h"

namespace muster::cli {
namespace {

constexpr char kHideCursor[] = "\x1b[?25l";
constexpr char kShowCursor[] = "\x1b[?25h";
constexpr char kEraseLineEnd[] = "\x1b[K";
constexpr char kEraseBelow[] = "\x1b[J";

std::vector<std::string> FitToScreen(std::string_view text, int height, int width) {
  std::vector<std::string> lines = absl::StrSplit(ToAbsl(text), '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  const size_t max_lines = static_cast<size_t>(std::max(height - 1, 2));
  if (height > 0 && lines.size() > max_lines) {
    const size_t omitted = lines.size() - (max_lines - 1);
    lines.resize(max_lines - 1);
    lines.push_back(absl::StrCat("... and ", omitted, " more lines"));
  }
  if (width > 0) {
    for (std::string& line : lines) line = Clip(line, width);
  }
  return lines;
}

}  // namespace

LiveView::~LiveView() {
  // The terminal may have echoed a Ctrl-C.
  if (started_) terminal_ << "\r" << kEraseLineEnd << kShowCursor << std::flush;
}

void LiveView::Show(std::string_view text, ScreenSize size) {
  std::string frame;
  if (!started_) frame += kHideCursor;
  started_ = true;
  if (lines_ > 0) absl::StrAppend(&frame, "\x1b[", lines_, "A\r");
  const std::vector<std::string> lines = FitToScreen(text, size.height, size.width);
  for (const std::string& line : lines) absl::StrAppend(&frame, line, kEraseLineEnd, "\n");
  frame += kEraseBelow;
  lines_ = static_cast<int>(lines.size());
  terminal_ << frame << std::flush;
}

}  // namespace muster::cli

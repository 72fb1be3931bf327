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

std::vector<std::string> Fit(std::string_view text, int height, int width) {
  std::vector<std::string> lines = absl::StrSplit(ToAbsl(text), '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  const size_t most = static_cast<size_t>(std::max(height - 1, 2));
  if (height > 0 && lines.size() > most) {
    const size_t left_out = lines.size() - (most - 1);
    lines.resize(most - 1);
    lines.push_back(absl::StrCat("... and ", left_out, " more lines"));
  }
  if (width > 0) {
    for (std::string& line : lines) line = Clip(line, width);
  }
  return lines;
}

}  // namespace

LiveView::~LiveView() {
  // The terminal may have echoed the Ctrl-C that ended it.
  if (begun_) terminal_ << "\r" << kEraseLineEnd << kShowCursor << std::flush;
}

void LiveView::Show(std::string_view text, ScreenSize size) {
  std::string frame;
  if (!begun_) frame += kHideCursor;
  begun_ = true;
  if (lines_ > 0) absl::StrAppend(&frame, "\x1b[", lines_, "A\r");
  const std::vector<std::string> lines = Fit(text, size.height, size.width);
  for (const std::string& line : lines) absl::StrAppend(&frame, line, kEraseLineEnd, "\n");
  frame += kEraseBelow;
  lines_ = static_cast<int>(lines.size());
  terminal_ << frame << std::flush;
}

}  // namespace muster::cli

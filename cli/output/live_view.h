// A few lines of a terminal that are redrawn in place.
#ifndef MUSTER_CLI_OUTPUT_LIVE_VIEW_H_
#define MUSTER_CLI_OUTPUT_LIVE_VIEW_H_

#include <ostream>
#include <string_view>

#include "cli/output/console.h"

namespace muster::cli {

// Draws on a stream that must be a terminal. Each Show is one write that overwrites the previous
// lines without clearing them first, so that nothing flickers. The cursor is hidden while the view
// exists. Not thread-safe.
class LiveView {
 public:
  explicit LiveView(std::ostream& terminal) : terminal_(terminal) {}

  // Keeps the last text, and shows the cursor on the line after it.
  ~LiveView();

  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;

  // Draws `text`, which is lines that end with a newline. Cuts lines to the width of the screen.
  // Replaces the lines that exceed its height by their number, so that the view never scrolls.
  void Show(std::string_view text, ScreenSize size);

  // Draws the last text with all of its lines: what does not fit scrolls.
  void ShowLast(std::string_view text, ScreenSize size) { Show(text, {.width = size.width}); }

 private:
  std::ostream& terminal_;
  int lines_ = 0;  // drawn, above the cursor
  bool started_ = false;
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_LIVE_VIEW_H_

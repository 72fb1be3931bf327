// A few lines of a terminal that are drawn again and again in place.
#ifndef MUSTER_CLI_OUTPUT_LIVE_VIEW_H_
#define MUSTER_CLI_OUTPUT_LIVE_VIEW_H_

#include <ostream>
#include <string_view>

#include "cli/output/console.h"

namespace muster::cli {

// Draws on a stream that has to be a terminal. Each Show is one write that goes over the lines
// before without clearing them first: nothing flickers. The cursor is hidden meanwhile. Not
// thread-safe.
class LiveView {
 public:
  explicit LiveView(std::ostream& terminal) : terminal_(terminal) {}

  // Leaves the last text standing, the cursor below it and visible.
  ~LiveView();

  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;

  // `text` is lines that end with a newline. What does not fit into the screen is cut; lines that
  // are left out are counted, so that the view never scrolls.
  void Show(std::string_view text, ScreenSize size);

 private:
  std::ostream& terminal_;
  int lines_ = 0;  // drawn, above the cursor
  bool begun_ = false;
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_LIVE_VIEW_H_

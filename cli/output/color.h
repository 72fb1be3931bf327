// Colors of a terminal. A color never replaces a word: it repeats it.
#ifndef MUSTER_CLI_OUTPUT_COLOR_H_
#define MUSTER_CLI_OUTPUT_COLOR_H_

#include <string>
#include <string_view>

namespace muster::cli {

enum class Color { kNone, kGood, kWarning, kBad, kFaint };

// Returns the color of a state, an outcome, a reason or a presence, by its word.
Color ColorOfWord(std::string_view word);

// Returns `text` in that color.
std::string Colored(std::string_view text, Color color);

// Returns true if output has colors. `choice`: the value of --color (auto, always, never). With
// auto: on a terminal, unless NO_COLOR is set (no-color.org) or TERM is "dumb".
bool WantsColor(std::string_view choice, bool is_terminal);

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_COLOR_H_

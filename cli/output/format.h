// Formats of values, for people and for programs.
#ifndef MUSTER_CLI_OUTPUT_FORMAT_H_
#define MUSTER_CLI_OUTPUT_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/printable.h"

namespace muster::cli {

// Returns "512 B", "1.5 KiB", "20 MiB": at most three digits, powers of 1024, rounded down.
std::string HumanSize(int64_t bytes);

// Returns "0s", "42s", "3m 05s", "2h 10m", "3d 04h": the two largest units, rounded down. A
// negative duration counts as zero; an infinite one is "forever".
std::string HumanDuration(absl::Duration duration);

// Returns "14:03:59 UTC" on the day of `now`, "2026-11-21 14:03 UTC" on other days, "-" for a time
// that is not set. All times are in UTC, like the times in logs and in texts of the services.
std::string HumanTime(absl::Time time, absl::Time now);

// Returns "2026-11-21T13:03:59.25Z", or an empty text for a time that is not set (the epoch).
std::string Rfc3339(absl::Time time);

// Returns whole percent, rounded down: 100 only if all is done.
int Percent(int64_t done, int64_t total);

// Returns "2 damaged stored results or archives", or an empty text for 0.
std::string DamageText(int64_t damaged);

// Returns "... and 12 more" as a line for a list of which `shown` of `all` entries are printed;
// empty if these are all.
std::string MoreText(int64_t all, size_t shown);

// Returns lower-case hexadecimal.
std::string Hex(std::string_view bytes);

// For all text of other machines: names of nodes, messages of plugins.
using muster::Printable;

// Returns the lines of `text` as sentences of one line.
std::string JoinLines(std::string_view text);

// Returns the columns of a terminal that `text` occupies: characters, not bytes. Changes of color
// occupy none.
int DisplayWidth(std::string_view text);

// Returns at most `width` columns of `text`. A truncated text ends with "...".
std::string Clip(std::string_view text, int width);

// Breaks `text` between words into lines of at most `width` columns; breaks longer words. Returns
// one line if `width` is 0.
std::vector<std::string> WrapLines(std::string_view text, int width);

// Returns those lines as one text, without a newline at the end.
std::string WrapText(std::string_view text, int width);

// Parses "30m", "1h30m", "90s", "1d 04h". Returns INVALID_ARGUMENT for other texts and for values
// that are not positive.
absl::StatusOr<absl::Duration> DurationArgument(std::string_view text);

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_FORMAT_H_

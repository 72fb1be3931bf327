// Values as a person reads them, and as a program does.
#ifndef MUSTER_CLI_OUTPUT_FORMAT_H_
#define MUSTER_CLI_OUTPUT_FORMAT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster::cli {

// "512 B", "1.5 KiB", "20 MiB": three digits at most, powers of 1024, rounded down.
std::string HumanSize(int64_t bytes);

// "0s", "42s", "3m 05s", "2h 10m", "3d 04h": the two largest units, rounded down. Negative ones
// count as zero; "for ever" for an infinite one.
std::string HumanDuration(absl::Duration duration);

// "14:03:59" on the day of `now`, "2026-11-21 14:03" on others, "-" for a time that is not set.
std::string HumanTime(absl::Time time, absl::Time now, absl::TimeZone zone);

// "2026-11-21T13:03:59.25Z"; an empty text for a time that is not set (the epoch).
std::string Rfc3339(absl::Time time);

// Whole percent, rounded down: 100 means all of them, never almost all.
int Percent(int64_t done, int64_t total);

// Lower-case hexadecimal.
std::string Hex(std::string_view bytes);

// `text` with everything that could move a terminal's cursor or colour it replaced by '?'. For all
// that came from somewhere else: names of nodes, messages of plugins. Newlines become spaces.
std::string Printable(std::string_view text);

// How many columns of a terminal `text` takes (characters, not bytes).
int DisplayWidth(std::string_view text);

// At most `width` columns of `text`; one that was cut ends with "...".
std::string Clip(std::string_view text, int width);

// "30m", "1h30m", "90s". INVALID_ARGUMENT if it is anything else or not positive.
absl::StatusOr<absl::Duration> DurationArgument(std::string_view text);

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_FORMAT_H_

#include "cli/output/format.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "services/common/base/strings.h"
#include "services/common/base/text_values.h"
#include "services/common/base/utf8.h"
#include "services/common/errors/cli.h"

namespace muster::cli {
namespace {

constexpr std::array<const char*, 6> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

constexpr char kEscape = '\x1b';

// Returns the bytes of a change of color at the beginning of `text`, or 0.
size_t ColorLength(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const size_t end = text.find('m');
  return end == std::string_view::npos ? 0 : end + 1;
}

// Returns the bytes of the first `width` columns of `text`.
size_t PrefixOfWidth(std::string_view text, int width) {
  size_t end = 0;
  for (int columns = 0; end < text.size(); ++end) {
    while (const size_t color = ColorLength(text.substr(end))) end += color;
    if (end >= text.size()) break;
    if ((text[end] & 0xC0) != 0x80 && ++columns > width) break;
  }
  return std::min(end, text.size());
}

// Returns "1d04h" for "1d 04h", which HumanDuration writes. Other spaces stay.
std::string WithoutSpaces(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool between = text[i] == ' ' && i > 0 && absl::ascii_isalpha(text[i - 1]) &&
                         i + 1 < text.size() && absl::ascii_isdigit(text[i + 1]);
    if (!between) out += text[i];
  }
  return out;
}

// Parses a time whose first unit may be "d", which absl does not know.
std::optional<absl::Duration> ParseDurationWithDays(const std::string& text) {
  const size_t unit = text.find('d');
  if (unit == std::string::npos) return ParseDuration(text);
  int32_t days = 0;
  const std::string rest = text.substr(unit + 1);
  if (!absl::SimpleAtoi(text.substr(0, unit), &days) || days < 0 ||
      !absl::ascii_isdigit(text.front())) {
    return std::nullopt;
  }
  const auto more = rest.empty() ? absl::ZeroDuration() : ParseDuration(rest);
  if (!more || (!rest.empty() && !absl::ascii_isdigit(rest.front()))) return std::nullopt;
  return absl::Hours(24) * days + *more;
}

}  // namespace

std::string HumanSize(int64_t bytes) {
  if (bytes < 1024) return absl::StrCat(std::max<int64_t>(bytes, 0), " B");
  size_t unit = 0;
  int64_t whole = bytes;  // in the unit before `unit`
  while (whole >= 1024 * 1024 && unit + 1 < kUnits.size()) {
    whole /= 1024;
    ++unit;
  }
  const int64_t tenths = whole * 10 / 1024;
  if (tenths >= 100 || tenths % 10 == 0) return absl::StrCat(tenths / 10, " ", kUnits[unit]);
  return absl::StrFormat("%d.%d %s", tenths / 10, tenths % 10, kUnits[unit]);
}

std::string HumanDuration(absl::Duration duration) {
  if (duration == absl::InfiniteDuration()) return "forever";
  const int64_t seconds = std::max<int64_t>(absl::ToInt64Seconds(duration), 0);
  if (seconds < 60) return absl::StrCat(seconds, "s");
  if (seconds < 3600) return absl::StrFormat("%dm %02ds", seconds / 60, seconds % 60);
  if (seconds < 86400) return absl::StrFormat("%dh %02dm", seconds / 3600, seconds / 60 % 60);
  const std::string days = absl::StrCat(seconds / 86400, "d");
  const int64_t hours = seconds / 3600 % 24;
  return hours == 0 ? days : absl::StrFormat("%s %02dh", days, hours);
}

std::string HumanTime(absl::Time time, absl::Time now) {
  if (time == absl::UnixEpoch() || time == absl::InfinitePast()) return "-";
  const absl::TimeZone utc = absl::UTCTimeZone();
  const bool today = absl::ToCivilDay(time, utc) == absl::ToCivilDay(now, utc);
  return absl::FormatTime(today ? "%H:%M:%S UTC" : "%Y-%m-%d %H:%M UTC", time, utc);
}

std::string Rfc3339(absl::Time time) {
  if (time == absl::UnixEpoch() || time == absl::InfinitePast()) return "";
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E*SZ", time, absl::UTCTimeZone());
}

int Percent(int64_t done, int64_t total) {
  if (total <= 0) return 0;
  return static_cast<int>(std::clamp<int64_t>(done, 0, total) * 100 / total);
}

std::string MoreText(int64_t all, size_t shown) {
  const int64_t left = all - static_cast<int64_t>(shown);
  return left > 0 ? absl::StrCat("... and ", left, " more\n") : "";
}

std::string DamageText(int64_t damaged) {
  if (damaged == 0) return "";
  return absl::StrCat(damaged, damaged == 1 ? " damaged stored result or archive"
                                            : " damaged stored results or archives");
}

std::string Hex(std::string_view bytes) { return absl::BytesToHexString(ToAbsl(bytes)); }

std::string Printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = PrintableLength(text);
    if (length > 0) {
      out.append(text.substr(0, length));
    } else {
      out.push_back(text.front() == '\n' || text.front() == '\t' ? ' ' : '?');
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

std::string JoinLines(std::string_view text) {
  std::string out;
  for (const absl::string_view line : absl::StrSplit(ToAbsl(text), '\n', absl::SkipWhitespace())) {
    if (!out.empty()) out += absl::StrContains(".:;!?", out.substr(out.size() - 1)) ? " " : ". ";
    absl::StrAppend(&out, line);
  }
  return out;
}

int DisplayWidth(std::string_view text) {
  int columns = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    while (const size_t color = ColorLength(text.substr(i))) i += color;
    if (i < text.size() && (text[i] & 0xC0) != 0x80) ++columns;
  }
  return columns;
}

std::string Clip(std::string_view text, int width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  const size_t end = PrefixOfWidth(text, std::max(width - 3, 0));
  const bool colored = text.substr(0, end).find(kEscape) != std::string_view::npos;
  return absl::StrCat(ToAbsl(text.substr(0, end)), colored ? "\x1b[0m" : "",
                      std::string(std::min(width, 3), '.'));
}

std::vector<std::string> WrapLines(std::string_view text, int width) {
  if (width <= 0 || DisplayWidth(text) <= width) return {std::string(text)};
  std::vector<std::string> lines(1);
  for (absl::string_view word : absl::StrSplit(ToAbsl(text), ' ')) {
    std::string& line = lines.back();
    if (DisplayWidth(line) + DisplayWidth(ToStd(word)) + 1 <= width || line.empty()) {
      absl::StrAppend(&line, line.empty() ? "" : " ", word);
    } else {
      lines.emplace_back(word);
    }
    while (DisplayWidth(lines.back()) > width) {
      const size_t end = PrefixOfWidth(lines.back(), width);
      std::string rest = lines.back().substr(end);
      lines.back().resize(end);
      lines.push_back(std::move(rest));
    }
  }
  return lines;
}

std::string WrapText(std::string_view text, int width) {
  return absl::StrJoin(WrapLines(text, width), "\n");
}

absl::StatusOr<absl::Duration> DurationArgument(std::string_view text) {
  const std::optional<absl::Duration> duration = ParseDurationWithDays(WithoutSpaces(text));
  if (duration && *duration > absl::ZeroDuration()) return *duration;
  return errors::InvalidDuration(Printable(text));
}

}  // namespace muster::cli

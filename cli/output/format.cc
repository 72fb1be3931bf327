#include "cli/output/format.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
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

// Returns the bytes of the first `width` columns of `text`.
size_t PrefixOfWidth(std::string_view text, int width) {
  size_t end = 0;
  for (int columns = 0; end < text.size(); ++end) {
    if ((text[end] & 0xC0) != 0x80 && ++columns > width) break;
  }
  return end;
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
  return absl::StrFormat("%dd %02dh", seconds / 86400, seconds / 3600 % 24);
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
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string Clip(std::string_view text, int width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  const size_t end = PrefixOfWidth(text, std::max(width - 3, 0));
  return absl::StrCat(ToAbsl(text.substr(0, end)), std::string(std::min(width, 3), '.'));
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
  const std::optional<absl::Duration> duration = ParseDuration(text);
  if (duration && *duration > absl::ZeroDuration()) return *duration;
  return errors::InvalidDuration(Printable(text));
}

}  // namespace muster::cli

#include "services/common/base/text_values.h"

#include <array>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/strings.h"

namespace muster {
namespace {

struct Unit {
  std::string_view name;
  int shift;
};

constexpr std::array<Unit, 4> kUnits = {{{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}}};

bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

std::string HostPort::ToString() const {
  constexpr std::string_view kTunnel = "wss://";  // rpc/channel_target.h
  if (host.starts_with(kTunnel)) {
    return absl::StrCat(std::string(kTunnel),
                        HostPort{host.substr(kTunnel.size()), port}.ToString());
  }
  const bool ipv6 = host.find(':') != std::string::npos;
  return ipv6 ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

std::optional<HostPort> ParseHostPort(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return std::nullopt;  // an IPv6 address without brackets could mean two things
  }
  if (host.empty() || host.find_first_of(" \t/[]@") != std::string_view::npos) return std::nullopt;
  uint32_t number = 0;
  if (!IsNumber(port) || !absl::SimpleAtoi(ToAbsl(port), &number) || number > 65535) {
    return std::nullopt;
  }
  return HostPort{std::string(host), static_cast<uint16_t>(number)};
}

std::optional<absl::Duration> ParseDuration(std::string_view text) {
  absl::Duration duration;
  if (!absl::ParseDuration(ToAbsl(text), &duration)) return std::nullopt;
  if (duration == absl::InfiniteDuration() || duration == -absl::InfiniteDuration()) {
    return std::nullopt;
  }
  return duration;
}

std::optional<uint64_t> ParseByteSize(std::string_view text) {
  int shift = 0;
  for (const Unit& unit : kUnits) {
    if (!text.ends_with(unit.name)) continue;
    text.remove_suffix(unit.name.size());
    shift = unit.shift;
    break;
  }
  uint64_t number = 0;
  if (!IsNumber(text) || !absl::SimpleAtoi(ToAbsl(text), &number)) return std::nullopt;
  if (number > std::numeric_limits<uint64_t>::max() >> shift) return std::nullopt;
  return number << shift;
}

std::string FormatByteSize(uint64_t bytes) {
  for (const Unit& unit : kUnits) {
    if (bytes != 0 && bytes % (uint64_t{1} << unit.shift) == 0) {
      return absl::StrCat(bytes >> unit.shift, ToAbsl(unit.name));
    }
  }
  return absl::StrCat(bytes);
}

std::string FormatAge(absl::Duration age) {
  constexpr absl::Duration kDay = absl::Hours(24);
  const int64_t days = age / kDay;
  return days > 0 && age == days * kDay ? absl::StrCat(days, "d") : absl::FormatDuration(age);
}

}  // namespace muster

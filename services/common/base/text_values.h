// Sizes, times and addresses as text.
#ifndef MUSTER_SERVICES_COMMON_BASE_TEXT_VALUES_H_
#define MUSTER_SERVICES_COMMON_BASE_TEXT_VALUES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace muster {

// A host name, IPv4 or IPv6 address with a port. Port 0 means any free port.
struct HostPort {
  std::string host;
  uint16_t port = 0;

  // "host:port", with brackets around an IPv6 address.
  std::string ToString() const;
  bool operator==(const HostPort&) const = default;
};

// Each of these returns nothing if `text` is not such a value.

// Parses "127.0.0.1:7443", "node-1:0", "[::1]:7443".
std::optional<HostPort> ParseHostPort(std::string_view text);

// Parses "30s", "5m", "1h30m", "250ms"; finite.
std::optional<absl::Duration> ParseDuration(std::string_view text);

// Parses bytes: "65536", "64KiB", "4MiB", "1GiB", "2TiB".
std::optional<uint64_t> ParseByteSize(std::string_view text);

// Writes bytes in the largest unit that divides them: "64KiB", "1000".
std::string FormatByteSize(uint64_t bytes);

// Writes whole days as "30d", any other duration as absl::FormatDuration does.
std::string FormatAge(absl::Duration age);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_TEXT_VALUES_H_

// The log of a program: one line for each event, as text or JSON.
//
//   Log(LogLevel::kInfo, "upload committed", {{"run", run}, {"node", node}, {"bytes", size}});
//
// Fields of the same meaning have the same key everywhere: run, plugin, node, peer, bytes, error.
// Secrets are never logged. A value of a peer cannot forge a line.
#ifndef MUSTER_SERVICES_COMMON_BASE_LOG_H_
#define MUSTER_SERVICES_COMMON_BASE_LOG_H_

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/base/clock.h"

namespace muster {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Parses "debug", "info", "warning", "error", the names in configuration files.
std::optional<LogLevel> ParseLogLevel(std::string_view name);

enum class LogFormat { kText, kJson };

struct LogOptions {
  LogFormat format = LogFormat::kText;
  LogLevel level = LogLevel::kInfo;  // less important events are dropped
  std::string service;               // the JSON field "service"
  std::string file;                  // empty: stderr
  // A file that reaches this size is renamed to .1, .2, ...; the oldest is deleted.
  size_t max_file_bytes = size_t{64} << 20;
  size_t max_files = 4;
};

// Configures the log of this process, which is text on stderr before the first call. To be called
// before other threads start. Fails if the file cannot be opened.
absl::Status StartLog(const LogOptions& options);

// One key and its value, for a call of Log.
class LogField {
 public:
  LogField(std::string_view key, std::string_view value) : key(key), value(value) {}
  LogField(std::string_view key, const char* value) : key(key), value(value) {}
  LogField(std::string_view key, const std::string& value) : key(key), value(value) {}
  LogField(std::string_view key, bool value)
      : key(key), value(value ? "true" : "false"), bare(true) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  LogField(std::string_view key, T value) : key(key), value(std::to_string(value)), bare(true) {}
  LogField(std::string_view key, double value);
  LogField(std::string_view key, absl::Duration value);
  // "NOT_FOUND: message", with the reason in place of the code if there is one.
  LogField(std::string_view key, const absl::Status& value);

  std::string_view key;
  std::string value;
  bool bare = false;  // a number or truth value: JSON without quotes
};

// Writes one line. Cuts values at 4 KiB and escapes control characters and bytes that are not
// UTF-8. Thread-safe; may block on the file or pipe.
void Log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});

// As Log, for events that a peer causes: one line a minute for each message and `source`, which
// identifies the peer. If more than one event occurred since the last line, the field "count" is
// their number.
void LogLimited(LogLevel level, std::string_view message, std::string_view source,
                std::initializer_list<LogField> fields = {},
                absl::Duration now = SystemClock().MonotonicNow());

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_LOG_H_

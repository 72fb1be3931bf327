#include "services/common/base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/container/node_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "services/common/base/clock.h"
#include "services/common/base/error.h"
#include "services/common/base/log_limiter.h"
#include "services/common/base/mutex.h"
#include "services/common/base/strings.h"
#include "services/common/base/utf8.h"
#include "services/common/errors/base.h"

namespace muster {
namespace {

constexpr size_t kMaxValue = 4096;
// The limits of LogLimited.
constexpr absl::Duration kLimitPeriod = absl::Minutes(1);
constexpr size_t kMaxSources = 1'000;  // of one message

struct LevelName {
  std::string_view name;   // in configuration and JSON
  std::string_view label;  // in text, of one width
  spdlog::level::level_enum spdlog;
};

constexpr std::array<LevelName, 4> kLevels = {{{"debug", "DEBUG", spdlog::level::debug},
                                               {"info", "INFO ", spdlog::level::info},
                                               {"warning", "WARN ", spdlog::level::warn},
                                               {"error", "ERROR", spdlog::level::err}}};

const LevelName& Name(LogLevel level) { return kLevels[static_cast<size_t>(level)]; }

struct Logging {
  LogFormat format = LogFormat::kText;
  std::string service;
  std::shared_ptr<spdlog::logger> logger;
};

std::shared_ptr<spdlog::logger> MakeLogger(spdlog::sink_ptr sink, LogLevel level) {
  auto logger = std::make_shared<spdlog::logger>("muster", std::move(sink));
  logger->set_pattern("%v");  // the line is made here
  logger->set_level(Name(level).spdlog);
  logger->flush_on(spdlog::level::trace);  // a crash loses no line
  return logger;
}

Logging& Current() {
  static auto* const logging =
      new Logging{// never destroyed: threads may log at exit
                  LogFormat::kText, "",
                  MakeLogger(std::make_shared<spdlog::sinks::stderr_sink_mt>(), LogLevel::kInfo)};
  return *logging;
}

void AppendEscaped(std::string_view text, bool quoted, std::string* out) {
  while (!text.empty()) {
    const size_t length = PrintableLength(text);
    if (length == 0) {
      const auto byte = static_cast<unsigned char>(text[0]);
      *out += byte == '\n' ? "\\n" : absl::StrFormat("\\x%02x", byte);
    } else {
      if (text[0] == '\\' || (quoted && text[0] == '"')) *out += '\\';
      *out += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
}

bool NeedsQuotes(std::string_view value) {
  if (value.empty() || value.find_first_of(" \"=\\") != std::string_view::npos) return true;
  for (; !value.empty(); value.remove_prefix(PrintableLength(value))) {
    if (PrintableLength(value) == 0) return true;
  }
  return false;
}

std::string Timestamp() {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", SystemClock().Now(), absl::UTCTimeZone());
}

std::string TextLine(LogLevel level, std::string_view message, absl::Span<const LogField> fields) {
  std::string line = absl::StrCat(Timestamp(), " ", ToAbsl(Name(level).label), " ");
  AppendEscaped(message.substr(0, kMaxValue), false, &line);
  for (const LogField& field : fields) {
    const std::string_view value = std::string_view(field.value).substr(0, kMaxValue);
    const bool quoted = NeedsQuotes(value);
    absl::StrAppend(&line, " ", ToAbsl(field.key), "=", quoted ? "\"" : "");
    AppendEscaped(value, quoted, &line);
    if (quoted) line += '"';
  }
  return line;
}

std::string Json(std::string_view value) {
  return nlohmann::json(value.substr(0, kMaxValue))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string JsonLine(LogLevel level, std::string_view message, absl::Span<const LogField> fields) {
  std::string line =
      absl::StrCat("{\"time\":\"", Timestamp(), "\",\"level\":\"", ToAbsl(Name(level).name), "\"");
  if (!Current().service.empty()) absl::StrAppend(&line, ",\"service\":", Json(Current().service));
  absl::StrAppend(&line, ",\"message\":", Json(message));
  for (const LogField& field : fields) {
    absl::StrAppend(&line, ",", Json(field.key), ":", field.bare ? field.value : Json(field.value));
  }
  return line + "}";
}

void Write(LogLevel level, std::string_view message, absl::Span<const LogField> fields) {
  const Logging& logging = Current();
  if (!logging.logger->should_log(Name(level).spdlog)) return;
  const std::string line = logging.format == LogFormat::kJson ? JsonLine(level, message, fields)
                                                              : TextLine(level, message, fields);
  logging.logger->log(Name(level).spdlog, spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace

std::optional<LogLevel> ParseLogLevel(std::string_view name) {
  for (size_t i = 0; i < kLevels.size(); ++i) {
    if (kLevels[i].name == name) return static_cast<LogLevel>(i);
  }
  return std::nullopt;
}

absl::Status StartLog(const LogOptions& options) {
  spdlog::sink_ptr sink;
  try {
    if (options.file.empty()) {
      sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    } else {
      sink = std::make_shared<spdlog::sinks::rotating_file_sink_mt>(
          options.file, options.max_file_bytes, std::max<size_t>(options.max_files, 1));
    }
  } catch (const spdlog::spdlog_ex& e) {
    return errors::LogNotWritable(options.file, e.what());
  }
  Current() = {options.format, options.service, MakeLogger(std::move(sink), options.level)};
  return absl::OkStatus();
}

LogField::LogField(std::string_view key, double value)
    // JSON has no infinity.
    : key(key), value(absl::StrFormat("%g", value)), bare(value - value == 0) {}

LogField::LogField(std::string_view key, absl::Duration value)
    : key(key), value(absl::FormatDuration(value)) {}

LogField::LogField(std::string_view key, const absl::Status& value) : key(key) {
  const std::string reason = ReasonOf(value);
  this->value = value.ok()
                    ? "OK"
                    : absl::StrCat(reason.empty() ? absl::StatusCodeToString(value.code()) : reason,
                                   ": ", value.message());
}

void Log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  Write(level, message, fields);
}

namespace {

// Each message has a limiter, so that a flood of one does not suppress the others.
LogLimiter& LimiterOf(std::string_view message) {
  struct Limiters {
    Mutex mutex;
    absl::node_hash_map<std::string, LogLimiter> of_message ABSL_GUARDED_BY(mutex);
  };
  static auto* const limiters = new Limiters;
  MutexLock lock(limiters->mutex);
  return limiters->of_message.try_emplace(std::string(message), kLimitPeriod, kMaxSources)
      .first->second;
}

}  // namespace

void LogLimited(LogLevel level, std::string_view message, std::string_view source,
                std::initializer_list<LogField> fields, absl::Duration now) {
  const auto count = LimiterOf(message).Count(source, now);
  if (!count) return;
  std::vector<LogField> counted = fields;
  if (*count > 1) counted.emplace_back("count", *count);
  Write(level, message, counted);
}

}  // namespace muster

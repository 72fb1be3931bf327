#include "cli/commands/keep_rules.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/exit_code.h"
#include "cli/output/format.h"
#include "services/common/base/text_values.h"
#include "services/common/rpc/proto_time.h"

namespace muster::cli {
namespace {

constexpr char kNextStep[] =
    "Write age=30d, runs=1000, bytes=500G, or several of them with commas; or all.";

absl::Status InvalidRule(const std::string& rule, const std::string& problem) {
  return UsageError(absl::StrCat("--keep: \"", Printable(rule), "\" ", problem), kNextStep);
}

// Returns what is wrong with a rule that SetRule refused.
std::string ProblemOf(const std::string& rule, const v1::RetentionRules& rules) {
  const std::string key = rule.substr(0, rule.find('='));
  if (rule == "all") return "excludes other rules";
  if (key != "age" && key != "runs" && key != "bytes") return "is not a rule";
  const bool again = (key == "age" && rules.has_age()) || (key == "runs" && rules.runs() != 0) ||
                     (key == "bytes" && rules.bytes() != 0);
  if (again) return absl::StrCat("is a second rule for ", key);
  if (key == "age") return "needs a positive number with a unit (s, m, h or d)";
  if (key == "runs") return "needs a positive number";
  return "needs a positive number, with a unit such as K, M, G or T";
}

// Parses "500G" and "500GiB".
std::optional<int64_t> ParseBytes(std::string text) {
  if (!text.empty() && std::string_view("KMGT").find(text.back()) != std::string_view::npos) {
    text += "iB";
  }
  const auto bytes = ParseByteSize(text);
  if (!bytes || *bytes == 0 || *bytes > uint64_t{1} << 60) return std::nullopt;
  return static_cast<int64_t>(*bytes);
}

bool SetRule(const std::string& key, const std::string& value, v1::RetentionRules& rules) {
  if (key == "age" && !rules.has_age()) {
    const auto age = DurationArgument(value);
    if (!age.ok()) return false;
    ToProto(*age, rules.mutable_age());
    return true;
  }
  if (key == "runs" && rules.runs() == 0) {
    int64_t runs = 0;
    if (!absl::SimpleAtoi(value, &runs) || runs < 1 || runs > 1'000'000'000) return false;
    rules.set_runs(runs);
    return true;
  }
  if (key == "bytes" && rules.bytes() == 0) {
    const auto bytes = ParseBytes(value);
    if (bytes) rules.set_bytes(*bytes);
    return bytes.has_value();
  }
  return false;
}

}  // namespace

absl::StatusOr<v1::RetentionRules> ParseKeepRules(const std::string& text) {
  v1::RetentionRules rules;
  if (text == "all") return rules;
  for (const std::string& rule : std::vector<std::string>(absl::StrSplit(text, ','))) {
    if (rule.empty()) return UsageError("--keep: there is an empty rule", kNextStep);
    const size_t equals = rule.find('=');
    if (equals == std::string::npos ||
        !SetRule(rule.substr(0, equals), rule.substr(equals + 1), rules)) {
      return InvalidRule(rule, ProblemOf(rule, rules));
    }
  }
  return rules;
}

std::string KeepRulesText(const v1::RetentionRules& rules) {
  std::vector<std::string> all;
  if (const absl::Duration age = FromProto(rules.age()); age > absl::ZeroDuration()) {
    all.push_back(absl::StrCat("age=", FormatAge(age)));
  }
  if (rules.runs() > 0) all.push_back(absl::StrCat("runs=", rules.runs()));
  if (rules.bytes() > 0) {
    all.push_back(absl::StrCat("bytes=", FormatByteSize(static_cast<uint64_t>(rules.bytes()))));
  }
  return all.empty() ? "all" : absl::StrJoin(all, ",");
}

std::string KeepRulesYaml(const v1::RetentionRules& rules) {
  return absl::StrCat("{age: ", absl::FormatDuration(FromProto(rules.age())),
                      ", runs: ", rules.runs(),
                      ", bytes: ", FormatByteSize(static_cast<uint64_t>(rules.bytes())),
                      "}  # 0: no such rule. Set by `muster up --keep`");
}

}  // namespace muster::cli

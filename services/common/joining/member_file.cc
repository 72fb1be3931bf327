#include "services/common/joining/member_file.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/text_values.h"
#include "services/common/errors/joining.h"
#include "services/common/identity/json_fields.h"
#include "services/common/rpc/channel_target.h"

namespace muster {
namespace {

constexpr std::string_view kAuto = "auto";
constexpr std::string_view kDirect = "direct";
constexpr size_t kMaxFile = 256 * 1024;

std::string FileOf(const std::string& folder, bool is_relay) {
  return absl::StrCat(folder, is_relay ? "/relay.json" : "/node.json");
}

absl::StatusOr<MemberFile> Parse(const std::string& path, const std::string& text, bool is_relay) {
  MemberFile member;
  member.is_relay = is_relay;
  JsonFields fields(text);
  fields.Text("fleet", &member.fleet);
  fields.Text(is_relay ? "relay" : "node", &member.name);
  fields.List("aggregator_targets", &member.aggregator_targets);
  fields.List("status_targets", &member.status_targets);
  fields.List("join_targets", &member.join_targets);
  fields.OptionalList("token_targets", &member.token_targets);
  fields.OptionalList("relay_targets", &member.relay_targets);
  fields.OptionalText("link", &member.link);
  const std::string fault = fields.Fault();
  if (!fault.empty()) return errors::InvalidMemberFile(path, fault);
  RETURN_IF_ERROR(CheckLink(member.link));
  return member;
}

}  // namespace

absl::Status CheckLink(const std::string& link) {
  if (link.empty() || link == kAuto || link == kDirect) return absl::OkStatus();
  const HostPort gateway = ParseTargets({link}).front();
  if (IsTunnel(gateway) && gateway.port != 0) return absl::OkStatus();
  return errors::InvalidLink(link);
}

std::vector<std::string> TargetsByLink(const std::vector<std::string>& targets,
                                       const std::string& link) {
  if (IsTunnel(std::string_view(link))) return {link};
  std::vector<std::string> permitted = targets;
  const auto tunnels = std::stable_partition(
      permitted.begin(), permitted.end(),
      [](const std::string& target) { return !IsTunnel(std::string_view(target)); });
  if (link == kDirect) permitted.erase(tunnels, permitted.end());
  return permitted;
}

absl::StatusOr<MemberFile> ReadMemberFile(const std::string& folder) {
  for (const bool is_relay : {false, true}) {
    const std::string path = FileOf(folder, is_relay);
    const auto text = ReadFileBounded(path, kMaxFile);
    if (text.ok()) return Parse(path, *text, is_relay);
    if (!absl::IsNotFound(text.status())) return text.status();
  }
  return errors::NoMemberFile(folder);
}

absl::Status WriteMemberFile(const std::string& folder, const MemberFile& member) {
  nlohmann::ordered_json json;
  json["fleet"] = member.fleet;
  json[member.is_relay ? "relay" : "node"] = member.name;
  json["aggregator_targets"] = member.aggregator_targets;
  json["status_targets"] = member.status_targets;
  json["join_targets"] = member.join_targets;
  json["token_targets"] = member.token_targets;
  json["relay_targets"] = member.relay_targets;
  if (!member.link.empty()) json["link"] = member.link;
  return WriteFileAtomically(
      FileOf(folder, member.is_relay),
      json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n", 0644);
}

}  // namespace muster

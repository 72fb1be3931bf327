#include "services/agent/attach/node_folder.h"

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"
#include "services/common/identity/identity.h"
#include "services/common/identity/pem_files.h"

namespace muster {
namespace {

constexpr size_t kMaxNodeFile = size_t{1} << 20;

absl::Status NotJoined(const std::string& path, const std::string& what) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NOT_JOINED",
                   absl::StrCat(path, " ", what),
                   "Join the fleet first: muster node join --token-file FILE; another folder is "
                   "named by --dir.");
}

absl::Status Damaged(const std::string& file, const std::string& why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "NODE_FOLDER_DAMAGED",
                   absl::StrCat(file, ": ", why),
                   "Join again: muster node join, with a new token and an empty folder.");
}

}  // namespace

absl::StatusOr<NodeFolder> NodeFolder::Load(const std::string& path) {
  const std::string file = absl::StrCat(path, "/node.json");
  const auto text = ReadFileBounded(file, kMaxNodeFile);
  if (absl::IsNotFound(text.status())) return NotJoined(path, "holds no identity of a node");
  if (!text.ok()) return text.status();
  const auto ca = ReadChainFile(absl::StrCat(path, "/command-ca.pem"));
  if (absl::IsNotFound(ca.status())) {
    return NotJoined(path, "holds no command-ca.pem: whose commands to obey is not known");
  }
  if (!ca.ok()) return ca.status();
  NodeFolder folder{path, "", "", {}, ca->front()};
  const auto json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Damaged(file, "it is not a JSON object");
  folder.fleet = json.value("fleet", "");
  folder.node = json.value("node", "");
  const auto targets = json.find("relay_targets");
  if (targets != json.end() && targets->is_array()) {
    for (const auto& target : *targets) {
      if (target.is_string()) folder.relay_targets.push_back(target.get<std::string>());
    }
  }
  if (!ToUri({folder.fleet, NodeIdentity{folder.node}}).ok() || !CheckFleet(folder.fleet).ok()) {
    return Damaged(file, "it names no fleet and node");
  }
  if (folder.relay_targets.empty()) return NotJoined(path, "names no relay to attach to");
  return folder;
}

std::string NodeFolder::uri() const { return ToUri({fleet, NodeIdentity{node}}).value(); }

}  // namespace muster

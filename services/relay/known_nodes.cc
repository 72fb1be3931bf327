#include "services/relay/known_nodes.h"

#include <utility>
#include <variant>
#include <vector>

#include "services/common/base/log.h"
#include "services/common/identity/identity.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

constexpr int64_t kMaxFile = int64_t{1} << 30;

// Between two stores of changes other than new nodes.
constexpr absl::Duration kPeriod = absl::Seconds(10);
// Between two stores, as a multiple of the time that the last one took.
constexpr int kPause = 20;

}  // namespace

absl::Status KnownNodes::Load(const std::string& fleet, absl::Time now, Topology& topology) {
  const auto bytes = ReadSmallFile(files_, path_, kMaxFile);
  if (absl::IsNotFound(bytes.status())) return absl::OkStatus();
  if (!bytes.ok()) return bytes.status();
  v1::AttachRequest::TopologyUpdate known;
  if (!known.ParseFromString(*bytes)) {
    const std::string aside = path_ + ".damaged";
    Log(LogLevel::kWarning, "the known nodes are damaged: nodes are added again when they attach",
        {{"path", path_}, {"moved_to", aside}});
    return files_.Rename(path_, aside);
  }
  std::vector<TopologyEntry> entries;
  for (const auto& child : known.descendants()) {
    TopologyEntry entry;
    entry.uri = child.statement().child();
    const auto identity = ParseIdentity(entry.uri, fleet);
    if (!identity.ok()) continue;
    if (const auto* node = std::get_if<NodeIdentity>(&identity->name)) {
      entry.name = node->name;
    } else if (const auto* service = std::get_if<ServiceIdentity>(&identity->name)) {
      entry.name = service->name;
      entry.is_relay = true;
    }
    entry.relay = child.relay();
    entry.since = child.attached() ? now : FromProto(child.change_time());
    entries.push_back(std::move(entry));
  }
  topology.Restore(entries);
  return absl::OkStatus();
}

absl::Status KnownNodes::Store(const TopologyView& topology) {
  v1::AttachRequest::TopologyUpdate known;
  for (const TopologyEntry& entry : topology.Snapshot()) {
    v1::AttachRequest::TopologyUpdate::Descendant& child = *known.add_descendants();
    child.mutable_statement()->set_child(entry.uri);
    child.set_relay(entry.relay);
    child.set_attached(entry.attached);
    ToProto(entry.since, child.mutable_change_time());
  }
  const std::string bytes = known.SerializeAsString();
  const Sha256Digest digest = Sha256::Of(bytes);
  if (digest == stored_) return absl::OkStatus();
  const absl::Status status = WriteFileDurably(files_, path_, bytes);
  if (status.ok()) stored_ = digest;
  return status;
}

absl::Status KnownNodes::Tick(const TopologyView& topology) {
  const absl::Duration now = clock_.MonotonicNow();
  const size_t entries = topology.size();
  if (now < store_after_ || (entries == entries_ && now < store_always_)) return absl::OkStatus();
  const absl::Status status = Store(topology);
  if (status.ok()) entries_ = entries;
  store_always_ = now + kPeriod;
  store_after_ = now + kPause * (clock_.MonotonicNow() - now);
  return status;
}

}  // namespace muster

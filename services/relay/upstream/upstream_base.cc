#include "services/relay/upstream/upstream_base.h"

#include <utility>
#include <variant>

#include "services/common/base/status_macros.h"
#include "services/common/errors/relay.h"

namespace muster {
namespace {

const ServiceIdentity* RelayOf(const Identity& identity) {
  const auto* service = std::get_if<ServiceIdentity>(&identity.name);
  return service != nullptr && service->role == ServiceRole::kRelay ? service : nullptr;
}

}  // namespace

std::shared_ptr<void> UpstreamBase::OnChange(std::function<void()> changed) {
  MutexLock lock(listeners_->mutex);
  const uint64_t id = ++listeners_->next;
  listeners_->callbacks[id] = std::move(changed);
  return {reinterpret_cast<void*>(id), [listeners = listeners_, id](void*) {
            MutexLock held(listeners->mutex);
            listeners->callbacks.erase(id);
          }};
}

void UpstreamBase::NotifyListeners() {
  MutexLock lock(listeners_->mutex);
  for (const auto& [id, callback] : listeners_->callbacks) callback();
}

absl::StatusOr<std::string> UpstreamBase::StatementFor(const Caller& caller) {
  const auto* node = std::get_if<NodeIdentity>(&caller.identity.name);
  if (node == nullptr)
    return errors::NoLiveStatement(ToUri(caller.identity).value_or("?"), topology_.name());
  // The node is a child of this relay, or a descendant of the relay that forwards its call.
  std::string via = node->name;
  if (caller.via) {
    const ServiceIdentity* relay = RelayOf(*caller.via);
    if (relay == nullptr) return errors::NoLiveStatement(node->name, topology_.name());
    via = relay->name;
  }
  const auto entry = topology_.Find(node->name);
  if (!entry || !entry->attached || entry->statement == nullptr ||
      topology_.NextHop(node->name) != via) {
    return errors::NoLiveStatement(node->name, topology_.name());
  }
  return entry->statement->SerializeAsString();
}

absl::Status UpstreamBase::CheckChildRelay(const Caller& caller) {
  const ServiceIdentity* relay = RelayOf(caller.identity);
  if (relay == nullptr || caller.via || topology_.NextHop(relay->name) != relay->name) {
    return errors::NoLiveStatement(ToUri(caller.identity).value_or("?"), topology_.name());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> UpstreamBase::StatementOfChildRelay(const Caller& caller) {
  RETURN_IF_ERROR(CheckChildRelay(caller));
  const std::string& name = RelayOf(caller.identity)->name;
  const auto entry = topology_.Find(name);
  if (!entry || entry->statement == nullptr) return errors::NoLiveStatement(name, topology_.name());
  return entry->statement->SerializeAsString();
}

}  // namespace muster

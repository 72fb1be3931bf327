#include "services/relay/topology/other_routes.h"

#include <algorithm>
#include <utility>

namespace muster {
namespace {

int64_t Expires(const OtherRoutes::Route& route) {
  return route.is.statement == nullptr ? 0 : route.is.statement->expire_time().seconds();
}

}  // namespace

void OtherRoutes::Add(Route route) {
  std::vector<Route>& routes = routes_[route.is.name];
  std::erase_if(routes, [&](const Route& other) { return other.child == route.child; });
  if (routes.size() >= kMaxRoutes) routes.erase(routes.begin());
  routes.push_back(std::move(route));
}

void OtherRoutes::Remove(const std::string& name, std::string_view child) {
  const auto found = routes_.find(name);
  if (found == routes_.end()) return;
  std::erase_if(found->second, [&](const Route& route) { return route.child == child; });
  if (found->second.empty()) routes_.erase(found);
}

template <typename Predicate>
void OtherRoutes::RemoveIf(const Predicate& matches) {
  absl::erase_if(routes_, [&](auto& entry) {
    std::erase_if(entry.second, matches);
    return entry.second.empty();
  });
}

void OtherRoutes::RemoveChild(std::string_view child) {
  RemoveIf([&](const Route& route) { return route.child == child; });
}

void OtherRoutes::RemoveUnlisted(std::string_view child, uint64_t listing) {
  RemoveIf([&](const Route& route) { return route.child == child && route.listing != listing; });
}

std::optional<OtherRoutes::Route> OtherRoutes::DequeueLatest(const std::string& name,
                                                             absl::Time now) {
  const auto found = routes_.find(name);
  if (found == routes_.end()) return std::nullopt;
  std::vector<Route>& routes = found->second;
  const auto latest = std::ranges::max_element(routes, {}, Expires);
  std::optional<Route> route;
  if (Expires(*latest) >= absl::ToUnixSeconds(now)) {
    route = std::move(*latest);
    routes.erase(latest);
  } else {
    routes.clear();
  }
  if (routes.empty()) routes_.erase(found);
  return route;
}

}  // namespace muster

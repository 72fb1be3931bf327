// The states of services, as the supervisor reports them (Service::Describe).
#ifndef MUSTER_CLI_SUPERVISOR_SERVICE_STATE_H_
#define MUSTER_CLI_SUPERVISOR_SERVICE_STATE_H_

#include <nlohmann/json.hpp>

namespace muster::supervisor {

inline bool IsRunning(const nlohmann::json& service) {
  return service.value("state", "") == "running";
}

// Returns whether the service, which did not run by the report `before`, has run since, or may have
// run, by the later report of all services.
inline bool RanSince(const nlohmann::json& before, const nlohmann::json& services) {
  for (const nlohmann::json& service : services) {
    if (service.value("name", "") != before.value("name", "")) continue;
    return IsRunning(service) || service.value("restarts", 0) != before.value("restarts", 0);
  }
  return true;  // the supervisor did not answer
}

}  // namespace muster::supervisor

#endif  // MUSTER_CLI_SUPERVISOR_SERVICE_STATE_H_

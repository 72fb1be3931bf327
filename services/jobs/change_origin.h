// The origin of a change that a call makes.
#ifndef MUSTER_SERVICES_JOBS_CHANGE_ORIGIN_H_
#define MUSTER_SERVICES_JOBS_CHANGE_ORIGIN_H_

#include "services/common/identity/caller_uri.h"
#include "services/common/rpc/call.h"
#include "services/jobs/audit_outbox.h"

namespace muster {

inline ChangeOrigin OriginOf(const Call& call) {
  const Caller& caller = call.caller();
  return {UriOf(caller), caller.via ? ToUri(*caller.via).value_or("") : ""};
}

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_CHANGE_ORIGIN_H_

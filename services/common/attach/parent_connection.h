// Attachments over gRPC.
#ifndef MUSTER_SERVICES_COMMON_ATTACH_PARENT_CONNECTION_H_
#define MUSTER_SERVICES_COMMON_ATTACH_PARENT_CONNECTION_H_

#include <memory>

#include "services/common/attach/attach_delegate.h"
#include "services/common/attach/parent_stream.h"
#include "services/common/base/clock.h"

namespace muster {

// Returns the connector of programs. It signs with the newest key and certificate in the options'
// folder. `options` and `clock` outlive it.
std::unique_ptr<ParentConnector> MakeParentConnector(const AttachClientOptions& options,
                                                     const Clock& clock);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ATTACH_PARENT_CONNECTION_H_

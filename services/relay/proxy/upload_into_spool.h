// An upload that is stored in the spool.
#ifndef MUSTER_SERVICES_RELAY_PROXY_UPLOAD_INTO_SPOOL_H_
#define MUSTER_SERVICES_RELAY_PROXY_UPLOAD_INTO_SPOOL_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "services/common/rpc/open_streams.h"
#include "services/common/upload/read_ahead_budget.h"
#include "services/common/upload/upload_session.h"
#include "services/relay/proxy/downstream_stream.h"
#include "services/relay/spool/spool.h"

namespace muster {

// The stream of a sender, and its limits.
struct SpoolStream {
  std::shared_ptr<DownstreamStream> downstream;
  UploadPeer peer;
  std::string node;  // the expected owner of the upload
  std::function<absl::StatusOr<OpenStreams::Ticket>()> count;
};

// Returns the sink of a stream that carries upload `id` of the spool. Its first message is the
// start. A sender of a complete upload receives the same answer again. The limit of streams counts
// either. Both references outlive the sink and the tasks of the spool.
absl::StatusOr<std::shared_ptr<MessageSink>> UploadIntoSpool(const std::string& id,
                                                             SpoolStream stream, Spool& spool,
                                                             ReadAheadBudget& budget);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_UPLOAD_INTO_SPOOL_H_

// A progress report as the API has it.
#ifndef MUSTER_SERVICES_CLIENT_PROGRESS_MESSAGE_H_
#define MUSTER_SERVICES_CLIENT_PROGRESS_MESSAGE_H_

#include "muster/v1/status.pb.h"
#include "services/client/client.h"

namespace muster::client {

// Everything but the key. What a server would cut is cut here already, and what is not UTF-8 is
// replaced: a plugin's output may hold anything, and as much of it as it likes.
void ToMessage(const Progress& progress, v1::ReportProgressRequest* request);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_PROGRESS_MESSAGE_H_

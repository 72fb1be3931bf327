// Converts a progress report to a message of the API.
#ifndef MUSTER_SERVICES_CLIENT_PROGRESS_MESSAGE_H_
#define MUSTER_SERVICES_CLIENT_PROGRESS_MESSAGE_H_

#include "muster/v1/status.pb.h"
#include "services/client/client.h"

namespace muster::client {

// Sets all fields except the key. Cuts texts to the limits of the server and replaces bytes that
// are not UTF-8, because a plugin's output may contain anything.
void ToMessage(const Progress& progress, v1::ReportProgressRequest* request);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_PROGRESS_MESSAGE_H_

// Merges heartbeats of one sender, which a relay keeps until they are sent upstream.
#ifndef MUSTER_SERVICES_RELAY_PROXY_HEARTBEATS_HEARTBEAT_MERGE_H_
#define MUSTER_SERVICES_RELAY_PROXY_HEARTBEATS_HEARTBEAT_MERGE_H_

#include "muster/v1/heartbeats.pb.h"

namespace muster {

// Merges `heartbeat`, which was validated, into `merged`. The result has one activity for each
// pair, because the status service reads only the last one: the newest, with the sum of the
// appended progress. It has at most 1,000 activities, which take at most 512 KiB of memory; the
// oldest are dropped.
void MergeHeartbeat(const v1::StreamHeartbeatsRequest& heartbeat,
                    v1::StreamHeartbeatsRequest* merged);

// Returns the activities with appended progress, without other fields than key and progress.
v1::StreamHeartbeatsRequest AppendedProgress(const v1::StreamHeartbeatsRequest& heartbeat);

// Removes appended progress from the activities.
void RemoveAppendedProgress(v1::StreamHeartbeatsRequest* heartbeat);

// Adds the appended progress of `unsent` to the activities of `first` that have no progress.
// Progress of `first` contains it already.
void AddAppendedProgress(const v1::StreamHeartbeatsRequest& unsent,
                         v1::StreamHeartbeatsRequest* first);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_HEARTBEATS_HEARTBEAT_MERGE_H_

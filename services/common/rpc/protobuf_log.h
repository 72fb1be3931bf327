// The log lines of the protobuf library.
#ifndef MUSTER_SERVICES_COMMON_RPC_PROTOBUF_LOG_H_
#define MUSTER_SERVICES_COMMON_RPC_PROTOBUF_LOG_H_

namespace muster {

// Writes the lines to our log, as debugging: the library has one for each text that is not UTF-8,
// which any peer can send. Changes the whole process; call it in main.
void RouteProtobufLog();

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_PROTOBUF_LOG_H_

// Text in messages. A string of proto3 is UTF-8: a receiver refuses the whole message for one byte
// that is not, so one such string in an event stops a stream, and every later stream, at that
// event.
//
// gRPC's serialisation is therefore replaced (grpc_override/) by one that puts U+FFFD in place of
// every byte of a string field that is not UTF-8: in whatever is sent, wherever it comes from (a
// store, a file, a `bytes` field), and in whatever is received. Fields of type `bytes` stay as they
// are.
#ifndef MUSTER_SERVICES_COMMON_RPC_MESSAGE_TEXT_H_
#define MUSTER_SERVICES_COMMON_RPC_MESSAGE_TEXT_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <optional>
#include <string>
#include <string_view>

namespace muster {

// The serialised message with its text cleaned; empty if there is nothing to clean. Bytes that are
// no message are left to the parser.
std::optional<std::string> CleanMessage(const google::protobuf::Descriptor& type,
                                        std::string_view bytes);

// Parses what was stored, cleaned if need be. False if it is not the message.
bool ParseCleaned(std::string_view bytes, google::protobuf::Message* message);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_MESSAGE_TEXT_H_

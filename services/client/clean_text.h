// Text from plugins, made fit for messages.
#ifndef MUSTER_SERVICES_CLIENT_CLEAN_TEXT_H_
#define MUSTER_SERVICES_CLIENT_CLEAN_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::client {

// The beginning of `text`, at most `max_bytes` of it, with U+FFFD in place of every byte that is
// not UTF-8: one such byte would make the whole message unreadable for its receiver.
std::string CleanText(std::string_view text, size_t max_bytes);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_CLEAN_TEXT_H_

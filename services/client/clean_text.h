// Prepares text from plugins for messages.
#ifndef MUSTER_SERVICES_CLIENT_CLEAN_TEXT_H_
#define MUSTER_SERVICES_CLIENT_CLEAN_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::client {

// Returns at most `max_bytes` of `text`, with U+FFFD in place of each byte that is not UTF-8: one
// such byte would make the whole message unreadable for its receiver.
std::string CleanText(std::string_view text, size_t max_bytes);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_CLEAN_TEXT_H_

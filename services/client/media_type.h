// Derives media types from file names.
#ifndef MUSTER_SERVICES_CLIENT_MEDIA_TYPE_H_
#define MUSTER_SERVICES_CLIENT_MEDIA_TYPE_H_

#include <string_view>

namespace muster::client {

// Returns the media type that legacy sidecars derive from the extension; empty for an unknown one.
// ".gz" is application/gzip, which the fleet unpacks if it is a tar.
std::string_view MediaTypeOf(std::string_view file_name);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_MEDIA_TYPE_H_

// What a file is, by its name.
#ifndef MUSTER_SERVICES_CLIENT_MEDIA_TYPE_H_
#define MUSTER_SERVICES_CLIENT_MEDIA_TYPE_H_

#include <string_view>

namespace muster::client {

// As old sidecars guess it from the ending; empty for an unknown one. ".gz" is application/gzip,
// which the fleet unpacks if it is a tar.
std::string_view MediaTypeOf(std::string_view file_name);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_MEDIA_TYPE_H_

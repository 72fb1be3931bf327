// Absolute paths of folders that a user names.
#ifndef MUSTER_SERVICES_COMMON_BASE_ABSOLUTE_PATH_H_
#define MUSTER_SERVICES_COMMON_BASE_ABSOLUTE_PATH_H_

#include <string>

namespace muster {

// Returns `path` from the root, without "." and "..". A relative path begins at the working folder.
// Programs convert folders where they read them, because child processes run in other folders.
std::string AbsolutePath(const std::string& path);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_ABSOLUTE_PATH_H_

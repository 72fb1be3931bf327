// The modes of the files and folders that a container gets.
#ifndef MUSTER_SERVICES_AGENT_JOBS_FILE_MODES_H_
#define MUSTER_SERVICES_AGENT_JOBS_FILE_MODES_H_

#include <sys/types.h>

namespace muster {

// The processes of a container run as any user. The folder of its job has mode 0700.
inline constexpr mode_t kAnyUserReads = 0444;
inline constexpr mode_t kAnyUserExecutes = 0555;
inline constexpr mode_t kAnyUserChanges = 0666;
// The modes of folders. Only the second one gives the owner the right to write.
inline constexpr mode_t kAnyUserEntersReadOnly = 0555;
inline constexpr mode_t kAnyUserEnters = 0755;
// The mode of a folder, or of a program.
inline constexpr mode_t kAnyUserWrites = 0777;

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_FILE_MODES_H_

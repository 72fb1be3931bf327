#ifndef MUSTER_CLI_VERSION_H_
#define MUSTER_CLI_VERSION_H_

namespace muster::cli {

inline constexpr char kVersion[] = "0.1.0";
inline constexpr char kApiVersion[] = "muster.v1";

}  // namespace muster::cli

#endif  // MUSTER_CLI_VERSION_H_

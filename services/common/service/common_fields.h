// Configuration fields that every service has, under the same names.
#ifndef MUSTER_SERVICES_COMMON_SERVICE_COMMON_FIELDS_H_
#define MUSTER_SERVICES_COMMON_SERVICE_COMMON_FIELDS_H_

#include <cstdint>
#include <string>

#include "services/common/base/config.h"

namespace muster {

// state_folder, which has to be given.
void BindStateFolder(std::string* folder, std::string comment, Config* file);

// health_port, inspection_port and addresses_file.
void BindInspection(int64_t* health_port, int64_t* inspection_port, std::string* addresses_file,
                    Config* file);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_SERVICE_COMMON_FIELDS_H_

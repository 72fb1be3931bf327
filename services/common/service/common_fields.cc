#include "services/common/service/common_fields.h"

#include <optional>
#include <utility>

namespace muster {

void BindStateFolder(std::string* folder, std::string comment, Config* file) {
  file->String("state_folder", folder, std::move(comment),
               [](const std::string& value) -> std::optional<std::string> {
                 if (!value.empty() && value.front() == '/') return std::nullopt;
                 return "an absolute path";
               });
}

void BindInspection(int64_t* health_port, int64_t* inspection_port, std::string* addresses_file,
                    Config* file) {
  file->Int("health_port", health_port,
            "Plaintext gRPC health on 127.0.0.1. 0 means any free port.", 0, 65535);
  file->Int("inspection_port", inspection_port,
            "/metrics, /livez and /readyz on 127.0.0.1. 0 means any free port.", 0, 65535);
  file->String("addresses_file", addresses_file,
               "The file for the bound addresses, as JSON. Empty: none is written.");
}

}  // namespace muster

#include "services/common/base/new_name.h"

#include "services/common/base/names.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/base.h"

namespace muster {

absl::Status ValidateNewName(std::string_view what, std::string_view name) {
  RETURN_IF_ERROR(ValidateName(what, name));
  if (!name.starts_with('-')) return absl::OkStatus();
  return errors::InvalidName(name, what, "it begins with a hyphen, as an option does");
}

}  // namespace muster

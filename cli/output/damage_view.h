// Damaged results and archives, for people and for programs.
#ifndef MUSTER_CLI_OUTPUT_DAMAGE_VIEW_H_
#define MUSTER_CLI_OUTPUT_DAMAGE_VIEW_H_

#include <string>
#include <vector>

#include "cli/output/json_view.h"
#include "muster/v1/verification.pb.h"

namespace muster::cli {

// Returns a table with a row for each damaged result or archive, with its run if `with_run`.
// `width`: of the terminal; 0 without one.
std::string DamageTable(const std::vector<v1::DamagedResult>& damaged, bool with_run, int width);

Json DamageJson(const std::vector<v1::DamagedResult>& damaged);

// Adds `damaged`, and `damage` to the entries of `plugins` that are damaged, to the JSON of `GET
// /status`.
void AddDamage(const std::vector<v1::DamagedResult>& damaged, Json& status);

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_DAMAGE_VIEW_H_

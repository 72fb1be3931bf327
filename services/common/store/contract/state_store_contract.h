// The contract of every StateStore driver. A driver's test includes this file and instantiates
// StateStoreContract with a StoreHarnessFactory.
#ifndef MUSTER_SERVICES_COMMON_STORE_CONTRACT_STATE_STORE_CONTRACT_H_
#define MUSTER_SERVICES_COMMON_STORE_CONTRACT_STATE_STORE_CONTRACT_H_

#include "services/common/store/contract/concurrency_contract.h"   // IWYU pragma: export
#include "services/common/store/contract/damage_contract.h"        // IWYU pragma: export
#include "services/common/store/contract/identity_contract.h"      // IWYU pragma: export
#include "services/common/store/contract/node_contract.h"          // IWYU pragma: export
#include "services/common/store/contract/relay_report_contract.h"  // IWYU pragma: export
#include "services/common/store/contract/result_contract.h"        // IWYU pragma: export
#include "services/common/store/contract/retention_contract.h"     // IWYU pragma: export
#include "services/common/store/contract/run_contract.h"           // IWYU pragma: export
#include "services/common/store/contract/silence_contract.h"       // IWYU pragma: export
#include "services/common/store/contract/upload_contract.h"        // IWYU pragma: export

#endif  // MUSTER_SERVICES_COMMON_STORE_CONTRACT_STATE_STORE_CONTRACT_H_

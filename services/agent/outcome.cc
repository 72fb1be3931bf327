#include "services/agent/outcome.h"

#include <iostream>

namespace muster {

int PrintOutcome(const client::Delivery& delivery) {
  const client::Status& status = delivery.status;
  if (status.ok()) {
    std::cerr << "committed";
    if (!delivery.receipt.sha256.empty()) {
      std::cerr << ": " << delivery.receipt.size << " bytes, SHA-256 " << delivery.receipt.sha256;
    }
    std::cerr << "\n";
  } else {
    if (status.code == client::Code::kErrorDelivered) std::cerr << "error result delivered: ";
    std::cerr << status.message << "\n";
    if (!status.next_step.empty()) std::cerr << status.next_step << "\n";
  }
  return static_cast<int>(status.code);
}

}  // namespace muster

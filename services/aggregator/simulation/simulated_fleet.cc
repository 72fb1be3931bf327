#include "services/aggregator/simulation/simulated_fleet.h"

#include <functional>

#include "absl/time/time.h"
#include "services/common/base/fake_clock.h"

namespace muster::testing {
namespace {

// A DER signature has one byte less or more with some keys and texts.
constexpr size_t kSignatureSize = 71;
constexpr int kTries = 16;

absl::Time Begin() { return FakeClock().Now() - absl::Hours(1); }

// Returns the shortest of several certificates, which is as short as any other time.
Certificate Shortest(const std::function<absl::StatusOr<Certificate>()>& issue) {
  Certificate shortest = *issue();
  for (int i = 0; i < kTries; ++i) {
    Certificate other = *issue();
    if (other.ToPem().size() < shortest.ToPem().size()) shortest = other;
  }
  return shortest;
}

}  // namespace

SimulatedFleet& SimulatedFleet::Get() {
  static SimulatedFleet& fleet = *new SimulatedFleet;
  return fleet;
}

SimulatedFleet::SimulatedFleet()
    : root_(*FleetRoot::Create(kName, *PrivateKey::Generate(), Begin())),
      key_(*PrivateKey::Generate()),
      certificate_(
          Shortest([this] { return root_.SignIntermediate(key_.public_key(), Begin()); })) {}

Intermediate SimulatedFleet::intermediate() const {
  return *Intermediate::Load(kName, key_, certificate_, root_.certificate());
}

v1::Signature SimulatedFleet::Sign(const SignedResult& result) {
  std::string& chain = chains_[result.node];
  if (chain.empty()) {
    const Intermediate intermediate = this->intermediate();
    const Certificate leaf = Shortest([&] {
      return intermediate.Issue(NodeIdentity{result.node}, key_.public_key(), {}, Begin(),
                                Begin() + absl::Hours(24 * 30));
    });
    chain = leaf.ToPem() + certificate_.ToPem();
  }
  v1::Signature signature;
  signature.set_certificate_chain_pem(chain);
  while (signature.value().size() != kSignatureSize) signature.set_value(*SignResult(key_, result));
  return signature;
}

}  // namespace muster::testing

#include "services/common/jobs/records_signature.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "services/common/base/clock.h"
#include "services/common/base/error.h"
#include "services/common/base/sha256.h"
#include "services/common/identity/authority.h"

namespace muster {
namespace {

constexpr char kFleet[] = "fleet-00112233.muster";

class RecordsSignatureTest : public ::testing::Test {
 protected:
  RecordsSignatureTest() {
    final_.set_job("0123456789abcdef0123456789abcdef");
    final_.set_node("n1");
    final_.set_sequence(3);
    final_.mutable_time()->set_seconds(1'750'000'000);
    final_.mutable_final()->set_outcome(v1::JOB_OUTCOME_EXITED);
    final_.mutable_final()->set_detail("detail");
  }

  std::string ChainFor(const FleetName& name) const {
    const Certificate leaf =
        *intermediate_.Issue(name, key_.public_key(), {}, now_, now_ + absl::Hours(1));
    return ChainToPem(std::vector<Certificate>{leaf, intermediate_.certificate()});
  }
  v1::JobRecord Signed(const FleetName& name) const {
    v1::JobRecord record = final_;
    RecordsDigest digest;
    digest.Add(record);
    *record.mutable_final()->mutable_signature() =
        *SignFinal(key_, ChainFor(name), kFleet, record, digest);
    return record;
  }
  std::string Refusal(const v1::JobRecord& record) {
    return ReasonOf(VerifyFinal(record, kFleet, chains_));
  }

  const absl::Time now_ = absl::Now();
  const FleetRoot root_ = *FleetRoot::Create(kFleet, *PrivateKey::Generate(), now_);
  const PrivateKey intermediate_key_ = *PrivateKey::Generate();
  const Intermediate intermediate_ = *Intermediate::Load(
      kFleet, intermediate_key_, *root_.SignIntermediate(intermediate_key_.public_key(), now_),
      root_.certificate());
  const PrivateKey key_ = *PrivateKey::Generate();
  VerifiedChains chains_{[this] { return std::vector<Certificate>{root_.certificate()}; },
                         SystemClock()};
  v1::JobRecord final_;
};

TEST_F(RecordsSignatureTest, SignatureOfTheNodeIsVerified) {
  EXPECT_EQ(Refusal(Signed(NodeIdentity{"n1"})), "");
}

TEST_F(RecordsSignatureTest, CertificatesOver16KibAreRefused) {
  v1::JobRecord record = Signed(NodeIdentity{"n1"});
  record.mutable_final()->mutable_signature()->mutable_certificate_chain_pem()->append(16 << 10,
                                                                                       '\n');
  EXPECT_EQ(Refusal(record), "SIGNATURE_INVALID");
}

TEST_F(RecordsSignatureTest, ChangedFinalRecordIsRefused) {
  using Change = std::function<void(v1::JobRecord&)>;
  for (const Change& change : std::vector<Change>{
           [](v1::JobRecord& r) { r.set_job("1123456789abcdef0123456789abcdef"); },
           [](v1::JobRecord& r) { r.set_node("n2"); }, [](v1::JobRecord& r) { r.set_sequence(4); },
           [](v1::JobRecord& r) { r.mutable_time()->set_nanos(1); },
           [](v1::JobRecord& r) { r.mutable_final()->set_exit_code(1); },
           [](v1::JobRecord& r) { r.mutable_final()->set_outcome(v1::JOB_OUTCOME_REFUSED); },
           [](v1::JobRecord& r) { r.mutable_final()->set_detail("other"); },
           [](v1::JobRecord& r) {
             r.mutable_final()->mutable_signature()->mutable_records_sha256()->front() ^= 1;
           },
           [](v1::JobRecord& r) { r.mutable_final()->clear_signature(); }}) {
    v1::JobRecord record = Signed(NodeIdentity{"n1"});
    change(record);
    EXPECT_EQ(Refusal(record), "SIGNATURE_INVALID") << record.ShortDebugString();
  }
}

TEST_F(RecordsSignatureTest, SignatureOfAnotherIdentityIsRefused) {
  EXPECT_EQ(Refusal(Signed(NodeIdentity{"n2"})), "SIGNATURE_INVALID");
  EXPECT_EQ(Refusal(Signed(ServiceIdentity{ServiceRole::kRelay, "n1"})), "SIGNATURE_INVALID");
}

TEST_F(RecordsSignatureTest, DigestDependsOnEveryRecordAndTheirOrder) {
  std::vector<v1::JobRecord> records(3);
  for (size_t i = 0; i < records.size(); ++i) {
    records[i].set_sequence(static_cast<int64_t>(i) + 1);
    records[i].mutable_output()->set_stream(v1::JOB_STREAM_STDOUT);
    records[i].mutable_output()->set_data(std::string(1, static_cast<char>('a' + i)));
  }
  const auto digest_of = [](const std::vector<v1::JobRecord>& all) {
    RecordsDigest digest;
    for (const v1::JobRecord& record : all) digest.Add(record);
    return digest.value();
  };
  const std::string whole = digest_of(records);
  EXPECT_NE(digest_of({records[0], records[2]}), whole);
  EXPECT_NE(digest_of({records[1], records[0], records[2]}), whole);
  std::vector<v1::JobRecord> changed = records;
  changed[1].mutable_output()->set_stream(v1::JOB_STREAM_STDERR);
  EXPECT_NE(digest_of(changed), whole);
  changed = records;
  changed[2].mutable_output()->set_data("d");
  EXPECT_NE(digest_of(changed), whole);
  RecordsDigest resumed(digest_of({records[0], records[1]}));
  resumed.Add(records[2]);
  EXPECT_EQ(resumed.value(), whole);
}

TEST_F(RecordsSignatureTest, DigestOfOutputsIsThatOfTheirNamesAndValues) {
  v1::JobRecord record;
  record.set_sequence(2);
  record.mutable_time()->set_seconds(1);
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"a", "[1]"}, {"b", ""}}) {
    auto& output = *record.mutable_outputs()->add_outputs();
    output.set_name(name);
    output.set_value(value);
  }
  EXPECT_EQ(DigestOf(record), DigestBytes(Sha256::Of("2\n1000000000\noutputs\na\n[1]\nb\n")));
  const std::string whole = DigestOf(record);
  record.mutable_outputs()->mutable_outputs(1)->set_value("2");
  EXPECT_NE(DigestOf(record), whole);
  record.mutable_outputs()->clear_outputs();
  EXPECT_EQ(DigestOf(record), DigestBytes(Sha256::Of("2\n1000000000\noutputs")));
  v1::JobRecord::Workspace& saved = *record.mutable_workspace();
  saved.set_workspace("w");
  saved.set_version(3);
  saved.set_sha256("\x01\x02");
  saved.set_size(9);
  saved.set_omitted(1);
  EXPECT_EQ(DigestOf(record),
            DigestBytes(Sha256::Of("2\n1000000000\nworkspace\nw\n3\n0102\n9\n1")));
}

}  // namespace
}  // namespace muster

#include "services/relay/files/share_signer.h"

#include <string>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/relay/files/share_store_fixture.h"
#include "services/relay/files/share_test_util.h"
#include "services/relay/topology/topology.h"

namespace muster {
namespace {

class ShareSignerTest : public ShareStoreFixture {
 protected:
  v1::SharedFile Signed() const {
    return signer_.Sign(UnsignedFile("f", "body", clock_.Now()), clock_.Now());
  }
  std::string Verify(const v1::SharedFile& file) const {
    return ReasonOf(VerifySigner(
        file, {*store_, tree_, clock_, kShareFleet, /*is_root=*/true, peers_, signer_}));
  }

  FileSigner signer_{clock_.Now()};
  Topology tree_{{"r1", false}, clock_};
  mutable NoPeers peers_;
};

// The change feed lists certificates, because the name of a node may get a new owner.
TEST_F(ShareSignerTest, FileThatARevokedCertificateSignedIsRefused) {
  const v1::SharedFile earlier = Signed();
  EXPECT_EQ(Verify(earlier), "");
  signer_.Revoke();
  EXPECT_EQ(Verify(earlier), "IDENTITY_REVOKED");
  EXPECT_EQ(Verify(Signed()), "") << "the node has joined again";
}

TEST_F(ShareSignerTest, FileWithAWrongSignatureIsRefused) {
  v1::SharedFile file = Signed();
  file.set_size(file.size() + 1);
  EXPECT_EQ(Verify(file), "INVALID_SIGNATURE");
}

}  // namespace
}  // namespace muster

#include "services/common/identity/pkcs12.h"

#include <gtest/gtest.h>
#include <openssl/pkcs12.h>

#include "services/common/base/error.h"
#include "services/common/identity/authority.h"

namespace muster {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'763'730'000);

TEST(Pkcs12Test, FileOpensWithItsPasswordAndContainsKeyAndChain) {
  const PrivateKey key = *PrivateKey::Generate();
  const auto root = FleetRoot::Create("fleet-01.muster", key, kNow);
  ASSERT_TRUE(root.ok());
  const auto file =
      MakePkcs12(key, std::vector{root->certificate(), root->certificate()}, "ann", "open sesame");
  ASSERT_TRUE(file.ok()) << file.status();
  const auto* bytes = reinterpret_cast<const unsigned char*>(file->view().data());
  PKCS12* read = d2i_PKCS12(nullptr, &bytes, static_cast<long>(file->view().size()));
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(PKCS12_verify_mac(read, "open", -1), 0) << "another password opens it";
  EVP_PKEY* opened = nullptr;
  X509* leaf = nullptr;
  STACK_OF(X509)* others = nullptr;
  ASSERT_EQ(PKCS12_parse(read, "open sesame", &opened, &leaf, &others), 1);
  EXPECT_EQ(EVP_PKEY_eq(opened, key.get()), 1);
  EXPECT_EQ(X509_cmp(leaf, root->certificate().get()), 0);
  EXPECT_EQ(sk_X509_num(others), 1);
  EVP_PKEY_free(opened);
  X509_free(leaf);
  sk_X509_pop_free(others, X509_free);
  PKCS12_free(read);
}

TEST(Pkcs12Test, KeyOfAnotherCertificateIsRefused) {
  const auto root = FleetRoot::Create("fleet-01.muster", *PrivateKey::Generate(), kNow);
  const auto file = MakePkcs12(*PrivateKey::Generate(), std::vector{root->certificate()}, "", "x");
  EXPECT_EQ(ReasonOf(file.status()), "PKCS12_FAILED");
  EXPECT_EQ(ReasonOf(MakePkcs12(*PrivateKey::Generate(), {}, "", "x").status()), "PKCS12_FAILED");
}

}  // namespace
}  // namespace muster

#include "services/common/rpc/proxy.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace muster {
namespace {

class ProxyTest : public ::testing::Test {
 protected:
  ProxyTest() { Clear(); }
  ~ProxyTest() override { Clear(); }

  static std::string Value(const char* variable) {
    const char* value = getenv(variable);
    return value == nullptr ? "(unset)" : value;
  }

 private:
  static void Clear() {
    for (const char* variable :
         {"grpc_proxy", "https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy", "ALL_PROXY",
          "no_proxy", "NO_PROXY", "no_grpc_proxy"}) {
      unsetenv(variable);
    }
  }
};

TEST_F(ProxyTest, WithoutAProxyNothingIsSet) {
  EXPECT_EQ(ShareProxyWithGrpc(), "");
  EXPECT_EQ(Value("grpc_proxy"), "(unset)");
  EXPECT_FALSE(ProxyOfEnvironment());
}

TEST_F(ProxyTest, GrpcUsesAProxyWithoutSchemeAndItsErrorsNameTheVariableOfTheUser) {
  setenv("https_proxy", "me:secret@proxy.example:3128", 1);
  EXPECT_EQ(ShareProxyWithGrpc(), "");
  EXPECT_EQ(Value("grpc_proxy"), "http://me:secret@proxy.example:3128");
  EXPECT_EQ(ProxyOfEnvironment()->variable, "https_proxy");
  EXPECT_EQ(ProxyOfEnvironment()->Address(), "proxy.example:3128");
}

TEST_F(ProxyTest, GrpcUsesTheUpperCaseNames) {
  setenv("HTTPS_PROXY", "http://proxy.example:3128/", 1);
  setenv("NO_PROXY", "localhost,10.0.0.5", 1);
  EXPECT_EQ(ShareProxyWithGrpc(), "");
  EXPECT_EQ(Value("grpc_proxy"), "http://proxy.example:3128/");
  EXPECT_EQ(Value("no_grpc_proxy"), "localhost,10.0.0.5");
  EXPECT_EQ(ProxyOfEnvironment()->variable, "HTTPS_PROXY");
}

TEST_F(ProxyTest, ValuesForGrpcAloneAreKept) {
  setenv("grpc_proxy", "", 1);  // none
  setenv("no_grpc_proxy", "a", 1);
  setenv("https_proxy", "proxy.example:3128", 1);
  setenv("NO_PROXY", "b", 1);
  EXPECT_EQ(ShareProxyWithGrpc(), "");
  EXPECT_EQ(Value("grpc_proxy"), "");
  EXPECT_EQ(Value("no_grpc_proxy"), "a");
}

TEST_F(ProxyTest, ProxyThatGrpcCannotUseIsReported) {
  for (const char* url : {"https://proxy.example:443", "socks5://proxy.example:1080"}) {
    setenv("https_proxy", url, 1);
    unsetenv("grpc_proxy");
    EXPECT_EQ(ShareProxyWithGrpc(),
              "gRPC uses no proxy, as it cannot use that in https_proxy: it does not begin with "
              "http://");
    EXPECT_EQ(Value("grpc_proxy"), "");
  }
  for (const char* url : {"http://proxy.example:70000", "proxy.example:0", "proxy.example:x"}) {
    setenv("https_proxy", url, 1);
    unsetenv("grpc_proxy");
    EXPECT_EQ(ShareProxyWithGrpc(),
              "gRPC uses no proxy, as it cannot use that in https_proxy: its port is not between "
              "1 and 65535");
  }
}

}  // namespace
}  // namespace muster

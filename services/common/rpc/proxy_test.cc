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

  static void Clear() {
    for (const char* variable :
         {"grpc_proxy", "https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy", "ALL_PROXY",
          "no_proxy", "NO_PROXY", "no_grpc_proxy"}) {
      unsetenv(variable);
    }
  }

  static void Set(const char* variable, const char* value) { setenv(variable, value, 1); }

  static std::string Value(const char* variable) {
    const char* value = getenv(variable);
    return value == nullptr ? "(unset)" : value;
  }
};

TEST_F(ProxyTest, WithoutAProxyNothingIsSet) {
  Set("NO_PROXY", "a");
  EXPECT_EQ(UseOneProxy(), "");
  EXPECT_EQ(Value("grpc_proxy"), "(unset)");
  EXPECT_EQ(Value("https_proxy"), "(unset)");
  EXPECT_EQ(Value("no_proxy"), "(unset)");
  EXPECT_FALSE(GrpcProxy());
  EXPECT_FALSE(CurlProxy());
}

TEST_F(ProxyTest, SchemeIsAddedAndTheVariableOfTheUserIsNamed) {
  for (const char* variable : {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}) {
    Clear();
    Set(variable, "me:secret@proxy.example:3128");
    EXPECT_EQ(UseOneProxy(), "");
    EXPECT_EQ(Value("grpc_proxy"), "http://me:secret@proxy.example:3128");
    EXPECT_EQ(Value("https_proxy"), "http://me:secret@proxy.example:3128");
    for (const auto& proxy : {GrpcProxy(), CurlProxy()}) {
      EXPECT_EQ(proxy->variable, variable);
      EXPECT_EQ(proxy->Address(), "proxy.example:3128");
    }
  }
}

TEST_F(ProxyTest, FirstVariableThatIsSetCounts) {
  Set("https_proxy", "");
  Set("http_proxy", "http://proxy.example:3128");
  EXPECT_EQ(UseOneProxy(), "");
  EXPECT_FALSE(GrpcProxy());
  EXPECT_FALSE(CurlProxy());
}

TEST_F(ProxyTest, ThisMachineIsReachedWithoutAProxy) {
  Set("HTTPS_PROXY", "http://proxy.example:3128/");
  EXPECT_EQ(UseOneProxy(), "");
  EXPECT_EQ(Value("no_proxy"), "localhost,127.0.0.1,::1");
  Clear();
  Set("HTTPS_PROXY", "http://proxy.example:3128/");
  Set("NO_PROXY", "10.0.0.5, .example ,");
  EXPECT_EQ(UseOneProxy(), "");
  EXPECT_EQ(Value("no_proxy"), "10.0.0.5,.example,localhost,127.0.0.1,::1");
  Clear();
  Set("HTTPS_PROXY", "http://proxy.example:3128/");
  Set("NO_PROXY", "10.0.0.5");
  Set("no_proxy", "");  // overrides the other one: the proxy serves every host
  EXPECT_EQ(UseOneProxy(), "");
  EXPECT_EQ(Value("no_proxy"), "");
  Clear();
  Set("HTTPS_PROXY", "http://proxy.example:3128/");
  Set("no_proxy", "*");
  EXPECT_EQ(UseOneProxy(), "");
  EXPECT_FALSE(GrpcProxy());
  EXPECT_FALSE(CurlProxy());
}

TEST_F(ProxyTest, ProxyOfGrpcAloneIsKept) {
  Set("grpc_proxy", "a.example:1");
  Set("https_proxy", "http://b.example:2");
  EXPECT_EQ(UseOneProxy(), "");
  EXPECT_EQ(GrpcProxy()->variable, "grpc_proxy");
  EXPECT_EQ(GrpcProxy()->Address(), "a.example:1");
  EXPECT_EQ(CurlProxy()->variable, "https_proxy");
  EXPECT_EQ(CurlProxy()->Address(), "b.example:2");
}

TEST_F(ProxyTest, ProxyThatCannotBeUsedIsReported) {
  Set("https_proxy", "https://proxy.example:443");
  EXPECT_EQ(UseOneProxy(), "the proxy in https_proxy is not used: it does not begin with http://");
  EXPECT_FALSE(GrpcProxy());
  EXPECT_FALSE(CurlProxy());
  for (const char* url : {"http://proxy.example:70000", "proxy.example:0", "proxy.example:x",
                          "http://proxy.example"}) {
    Clear();
    Set("HTTPS_PROXY", url);
    EXPECT_EQ(UseOneProxy(),
              "the proxy in HTTPS_PROXY is not used: it does not end with a port between 1 and "
              "65535");
    EXPECT_FALSE(GrpcProxy());
    EXPECT_FALSE(CurlProxy());
  }
}

TEST_F(ProxyTest, UrlThatGrpcCannotParseIsReported) {
  for (const char* url : {"http://u:p@ss@proxy.example:1", "@", "http://:80", "proxy example:80"}) {
    Clear();
    Set("https_proxy", url);
    EXPECT_EQ(UseOneProxy(),
              "the proxy in https_proxy is not used: it is not http://[USER:PASSWORD@]HOST:PORT")
        << url;
  }
  Clear();
  Set("https_proxy", "proxy.example:+80");
  EXPECT_NE(UseOneProxy(), "");
  Clear();
  Set("https_proxy", "HTTP://proxy.example:80");
  EXPECT_EQ(UseOneProxy(), "");
  EXPECT_EQ(Value("grpc_proxy"), "http://proxy.example:80");
}

TEST_F(ProxyTest, ProxyOfOtherProgramsIsIgnored) {
  Set("ALL_PROXY", "socks5://proxy.example:1080");
  EXPECT_EQ(UseOneProxy(), "");
  EXPECT_FALSE(GrpcProxy());
  EXPECT_FALSE(CurlProxy());
}

TEST_F(ProxyTest, ProxyOfHostHasItsPasswordAndExceptions) {
  Set("https_proxy", "http://me:a%40b%2@proxy.example:3128");
  Set("no_proxy", "10.0.0.5, .corp.example");
  const auto proxy = GrpcProxyOf("gateway.example");
  ASSERT_TRUE(proxy);
  EXPECT_EQ(proxy->proxy.Address(), "proxy.example:3128");
  EXPECT_EQ(proxy->credentials, "me:a@b%2");
  EXPECT_FALSE(GrpcProxyOf("10.0.0.5"));
  EXPECT_FALSE(GrpcProxyOf("gateway.Corp.example"));
  Set("no_grpc_proxy", "gateway.example");
  EXPECT_FALSE(GrpcProxyOf("gateway.example"));
  EXPECT_TRUE(GrpcProxyOf("10.0.0.5")) << "no_grpc_proxy overrides no_proxy, as in gRPC";
  Set("grpc_proxy", "");
  EXPECT_FALSE(GrpcProxyOf("10.0.0.5"));
}

}  // namespace
}  // namespace muster

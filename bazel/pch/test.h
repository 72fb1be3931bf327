// What tests include besides.
#ifndef MUSTER_BAZEL_PCH_TEST_H_
#define MUSTER_BAZEL_PCH_TEST_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#endif  // MUSTER_BAZEL_PCH_TEST_H_

#include "services/common/base/errno_error.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "services/common/base/error.h"

namespace muster {
namespace {

TEST(ErrnoErrorTest, FullDiskIsNotAnInternalError) {
  for (const int number : {ENOSPC, EDQUOT}) {
    const absl::Status status = ErrnoError(number, "write", "/state/x");
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(ReasonOf(status), "DISK_FULL");
  }
}

TEST(ErrnoErrorTest, MessageNamesTheCallItsSubjectAndTheCause) {
  const absl::Status status = ErrnoError(ENOENT, "open", "/state/x");
  EXPECT_EQ(status.message(), "open /state/x: No such file or directory");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(NextStepOf(status), "Check the path.");
}

TEST(ErrnoErrorTest, EachNumberHasItsReason) {
  EXPECT_EQ(ReasonOf(ErrnoError(EACCES, "open", "x")), "FILE_NOT_ACCESSIBLE");
  EXPECT_EQ(ReasonOf(ErrnoError(EPERM, "open", "x")), "FILE_NOT_ACCESSIBLE");
  EXPECT_EQ(ReasonOf(ErrnoError(EEXIST, "create", "x")), "FILE_EXISTS");
  EXPECT_EQ(ReasonOf(ErrnoError(EROFS, "sync folder", "x")), "FILE_SYSTEM_NOT_WRITABLE");
  EXPECT_EQ(ReasonOf(ErrnoError(EIO, "read", "x")), "IO_ERROR");
  EXPECT_EQ(ReasonOf(ErrnoError(EMFILE, "open", "x")), "SYSTEM_LIMIT");
}

}  // namespace
}  // namespace muster

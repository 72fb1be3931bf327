// Preloaded into programs under test: makes a chosen fsync fail, and moves the realtime clock. See
// faults.go.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static char sync_file[4096];
static volatile const int64_t* offset;  // seconds; null: the clock is not moved
static int (*real_clock_gettime)(clockid_t, struct timespec*);
static long (*real_syscall)(long, ...);
static int (*real_timedwait)(pthread_cond_t*, pthread_mutex_t*, const struct timespec*);
static int (*real_clockwait)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);

static void find_functions(void) {
  if (real_syscall != NULL) return;
  real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
  real_timedwait = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
  if (real_timedwait == NULL) real_timedwait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
  real_clockwait = dlsym(RTLD_NEXT, "pthread_cond_clockwait");
  real_syscall = dlsym(RTLD_NEXT, "syscall");
}

__attribute__((constructor)) static void prepare(void) {
  find_functions();
  const char* folder = getenv("FLEET_FAULTS");
  const char* name = getenv("FLEET_FAULTS_NAME");
  if (folder == NULL) return;
  if (name == NULL) name = program_invocation_short_name;
  snprintf(sync_file, sizeof(sync_file), "%s/%s.sync", folder, name);
  char clock_file[4096];
  snprintf(clock_file, sizeof(clock_file), "%s/%s.clock", folder, name);
  const int file = open(clock_file, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  void* mapped = mmap(NULL, sizeof(*offset), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (mapped != MAP_FAILED) offset = mapped;
}

// The file has the number of the call that fails. It is removed by that call.
static int sync_fails(void) {
  static int calls;
  const int file = sync_file[0] == 0 ? -1 : open(sync_file, O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    __atomic_store_n(&calls, 0, __ATOMIC_SEQ_CST);
    return 0;
  }
  char text[16] = {0};
  const ssize_t size = read(file, text, sizeof(text) - 1);
  close(file);
  if (size <= 0 || __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST) < atoi(text)) return 0;
  return unlink(sync_file) == 0;
}

int fsync(int fd) {
  find_functions();
  if (!sync_fails()) return (int)real_syscall(SYS_fsync, fd);
  errno = EIO;
  return -1;
}

int fdatasync(int fd) {
  find_functions();
  if (!sync_fails()) return (int)real_syscall(SYS_fdatasync, fd);
  errno = EIO;
  return -1;
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  find_functions();
  const int failed = real_clock_gettime(clock, now);
  if (offset != NULL && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    now->tv_sec += *offset;
  }
  return failed;
}

int gettimeofday(struct timeval* now, void* zone) {
  (void)zone;
  struct timespec precise;
  if (clock_gettime(CLOCK_REALTIME, &precise) != 0) return -1;
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* into) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (into != NULL) *into = now.tv_sec;
  return now.tv_sec;
}

// A wait until a realtime is made of short waits, so that it ends when the clock jumps, as in the
// kernel. Returns the end of the next one in the kernel's time; false: the time has come.
static int next_wait(const struct timespec* until, struct timespec* slice) {
  const int64_t most = 50000000;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  int64_t left = (until->tv_sec - now.tv_sec > 1)
                     ? most
                     : (until->tv_sec - now.tv_sec) * 1000000000 + until->tv_nsec - now.tv_nsec;
  if (left <= 0) return 0;
  if (left > most) left = most;
  real_clock_gettime(CLOCK_REALTIME, slice);
  slice->tv_nsec += left;
  slice->tv_sec += slice->tv_nsec / 1000000000;
  slice->tv_nsec %= 1000000000;
  return 1;
}

static int wait_sliced(pthread_cond_t* condition, pthread_mutex_t* mutex,
                       const struct timespec* until) {
  struct timespec slice, unused;
  if (!next_wait(until, &slice)) return ETIMEDOUT;
  const int result = real_clockwait(condition, mutex, CLOCK_REALTIME, &slice);
  return result == ETIMEDOUT && next_wait(until, &unused) ? 0 : result;  // 0: a spurious wake
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           const struct timespec* until) {
  find_functions();
  const int monotonic = (condition->__data.__wrefs & 2) != 0;
  if (offset == NULL || monotonic) return real_timedwait(condition, mutex, until);
  return wait_sliced(condition, mutex, until);
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* until) {
  find_functions();
  if (offset == NULL || clock != CLOCK_REALTIME) {
    return real_clockwait(condition, mutex, clock, until);
  }
  return wait_sliced(condition, mutex, until);
}

// Abseil waits by this call.
long syscall(long number, ...) {
  find_functions();
  va_list list;
  va_start(list, number);
  long a[6];
  for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
  va_end(list);
  const struct timespec* until = (const struct timespec*)a[3];
  if (offset == NULL || number != SYS_futex || (a[1] & FUTEX_CLOCK_REALTIME) == 0 ||
      until == NULL) {
    return real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  }
  struct timespec slice, unused;
  if (!next_wait(until, &slice)) {
    errno = ETIMEDOUT;
    return -1;
  }
  const long result = real_syscall(number, a[0], a[1], a[2], &slice, a[4], a[5]);
  if (result != 0 && errno == ETIMEDOUT && next_wait(until, &unused)) errno = EINTR;
  return result;
}

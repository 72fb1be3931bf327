"""C++ warnings and test defaults of all targets."""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library", "cc_test")

# Warnings are errors where the tests run, not where users build: an optimising compiler of another version warns of more.
COPTS = [
    "-Wall",
    "-Wextra",
] + select({
    "//bazel:optimized": [],
    "//conditions:default": ["-Werror"],
}) + [
    "-Wnon-virtual-dtor",
    "-Wthread-safety",
    "-Wthread-safety-beta",
    "-Wno-unused-parameter",
    "-Wno-missing-field-initializers",
    "-Wno-deprecated-declarations",  # libstdc++ 12 uses its own for std::stable_partition
]

# Headers of other projects that most files include, parsed once (//bazel/pch).
PRECOMPILED = ["-include-pch", "$(BINDIR)/bazel/pch/library.pch"]
_PRECOMPILED_FOR_TESTS = ["-include-pch", "$(BINDIR)/bazel/pch/test.pch"]

def muster_cc_library(name, copts = [], deps = [], **kwargs):
    cc_library(name = name, copts = COPTS + PRECOMPILED + copts, deps = deps + ["//bazel/pch:library"], **kwargs)

def muster_cc_binary(name, copts = [], deps = [], malloc = "@sys//:tcmalloc", **kwargs):
    # The sanitizer configurations override malloc with --custom_malloc.
    cc_binary(name = name, copts = COPTS + PRECOMPILED + copts, deps = deps + ["//bazel/pch:library"], malloc = malloc, **kwargs)

def muster_cc_test(name, copts = [], deps = [], data = [], size = "small", **kwargs):
    cc_test(
        name = name,
        size = size,
        copts = COPTS + _PRECOMPILED_FOR_TESTS + copts,
        data = data + ["//bazel/sanitizers:suppressions"],
        deps = deps + ["//bazel/pch:test", "@sys//:gtest_main"],
        **kwargs
    )

def muster_fuzz_test(name, srcs, corpus, deps = [], copts = [], **kwargs):
    # A fuzz target: LLVMFuzzerTestOneInput. With --config=fuzz it is linked with libFuzzer and run by testing/fuzz/run;
    # without it, it is a test that passes each file of the corpus to the target once.
    cc_test(
        name = name,
        size = "small",
        srcs = srcs,
        args = ["$(rootpaths %s)" % corpus],
        copts = COPTS + PRECOMPILED + copts,
        data = [corpus, "//bazel/sanitizers:suppressions"],
        linkopts = select({
            "//testing/fuzz:with_libfuzzer": ["-fsanitize=fuzzer"],
            "//conditions:default": [],
        }),
        tags = ["fuzz"],
        deps = deps + ["//bazel/pch:library"] + select({
            "//testing/fuzz:with_libfuzzer": [],
            "//conditions:default": ["//testing/fuzz:replay"],
        }),
        **kwargs
    )

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
    "-Wno-unused-parameter",
    "-Wno-missing-field-initializers",
]

def muster_cc_library(name, copts = [], **kwargs):
    cc_library(name = name, copts = COPTS + copts, **kwargs)

def muster_cc_binary(name, copts = [], malloc = "@sys//:tcmalloc", **kwargs):
    # The sanitizer configurations override malloc with --custom_malloc.
    cc_binary(name = name, copts = COPTS + copts, malloc = malloc, **kwargs)

def muster_cc_test(name, copts = [], deps = [], data = [], size = "small", **kwargs):
    cc_test(
        name = name,
        size = size,
        copts = COPTS + copts,
        data = data + ["//bazel/sanitizers:suppressions"],
        deps = deps + ["@sys//:gtest_main"],
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
        copts = COPTS + copts,
        data = [corpus, "//bazel/sanitizers:suppressions"],
        linkopts = select({
            "//testing/fuzz:with_libfuzzer": ["-fsanitize=fuzzer"],
            "//conditions:default": [],
        }),
        tags = ["fuzz"],
        deps = deps + select({
            "//testing/fuzz:with_libfuzzer": [],
            "//conditions:default": ["//testing/fuzz:replay"],
        }),
        **kwargs
    )

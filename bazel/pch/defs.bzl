"""Headers of other projects that most files include, parsed once for all of them.

A file that uses such a header includes it all the same: clang-tidy, which runs without these, finds what is missing.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _precompiled_header_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    context = cc_common.merge_cc_infos(cc_infos = [d[CcInfo] for d in ctx.attr.deps]).compilation_context
    out = ctx.actions.declare_file(ctx.label.name + ".pch")
    flags = cc_common.get_memory_inefficient_command_line(
        feature_configuration = features,
        action_name = "c++-compile",
        variables = cc_common.create_compile_variables(
            feature_configuration = features,
            cc_toolchain = toolchain,
            user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts,
            preprocessor_defines = context.defines,
            quote_include_directories = context.quote_includes,
            include_directories = context.includes,
            system_include_directories = context.system_includes,
            use_pic = True,
        ),
    )

    # From standard input, and without times: otherwise the result has paths and times of the sandbox, which the sandbox
    # of the next compilation does not have, and names headers that are not among the inputs of those who use it.
    ctx.actions.run_shell(
        command = "cat %s | %s \"$@\" -x c++-header - -o %s" % (
            " ".join([f.path for f in ctx.files.srcs]),
            toolchain.compiler_executable,
            out.path,
        ),
        arguments = [f for f in flags if f != "-c"] + [
            "-Wno-include-next-outside-header",
            "-Wno-pragma-once-outside-header",
            "-fpch-instantiate-templates",
            "-Xclang",
            "-fno-pch-timestamp",
            "-working-directory=/proc/self/cwd",
        ],
        inputs = depset(ctx.files.srcs + ctx.files._versions, transitive = [context.headers, toolchain.all_files]),
        outputs = [out],
        mnemonic = "CppPrecompile",
        progress_message = "Precompiling the headers of %s" % ctx.label,
    )
    return [
        DefaultInfo(files = depset([out])),
        CcInfo(compilation_context = cc_common.create_compilation_context(headers = depset([out]))),
    ]

precompiled_header = rule(
    implementation = _precompiled_header_impl,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo]),
        "srcs": attr.label_list(allow_files = [".h"], mandatory = True),
        "_versions": attr.label(default = "@sys//:versions", allow_single_file = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    incompatible_use_toolchain_transition = True,
)

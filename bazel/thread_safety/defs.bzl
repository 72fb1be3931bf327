"""Checks with clang that members are used with their mutex held: bazel build --config=thread-safety //..."""

_FLAGS = ["-std=c++20", "-fPIC", "-D_GLIBCXX_ASSERTIONS", "-Wno-everything", "-Wthread-safety", "-Wthread-safety-beta", "-Werror"]

# The precompiled header is read in other sandboxes than it is written in, and Bazel's outputs do not keep
# their times: its paths are relative to the sandbox, and its files are compared by content.
_RUN = 'exec /usr/bin/clang++-19 -isysroot "$PWD" -Xclang -fno-pch-timestamp -Xclang -fvalidate-ast-input-files-content "$@"'

_MUTEX = "services/common/base/mutex.h"

def _search_flags(context):
    flags = ["-D" + d for d in context.defines.to_list()]
    for option, paths in [
        ("-iquote", context.quote_includes),
        ("-isystem", context.system_includes),
        ("-I", context.includes),
    ]:
        for path in paths.to_list():
            flags += [option, path]
    return flags

def _context_of(deps):
    infos = [d[CcInfo] for d in deps if CcInfo in d]
    return cc_common.merge_cc_infos(cc_infos = infos).compilation_context

def _precompiled_header_impl(ctx):
    context = _context_of(ctx.attr.deps)
    out = ctx.actions.declare_file(ctx.label.name + ".pch")
    ctx.actions.run_shell(
        command = _RUN,
        arguments = _FLAGS + _search_flags(context) + [
            "-Xclang",
            "-relocatable-pch",
            "-fpch-instantiate-templates",
            "-x",
            "c++-header",
            ctx.file.src.path,
            "-o",
            out.path,
        ],
        inputs = depset([ctx.file.src], transitive = [context.headers]),
        outputs = [out],
        mnemonic = "CppPrecompile",
    )
    return [DefaultInfo(files = depset([out, ctx.file.src])), CcInfo(compilation_context = context)]

precompiled_header = rule(
    implementation = _precompiled_header_impl,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo]),
        "src": attr.label(allow_single_file = [".h"], mandatory = True),
    },
)

def _thread_safety_impl(target, ctx):
    rule = ctx.rule
    if not ctx.rule.kind.startswith("cc_") or not hasattr(rule.attr, "deps"):
        return []
    pch = ctx.attr._pch
    deps = rule.attr.deps + [pch]
    if CcInfo in target:
        deps = [target] + deps
    context = _context_of(deps)
    own = rule.files.srcs + (rule.files.hdrs if hasattr(rule.files, "hdrs") else [])
    if not [h for h in context.headers.to_list() if h.short_path == _MUTEX]:
        return []
    flags = _FLAGS + _search_flags(context) + ["-fsyntax-only", "-include-pch", [f for f in pch.files.to_list() if f.extension == "pch"][0].path]
    marks = []
    for src in own:
        if not src.is_source or src.extension != "cc":
            continue
        mark = ctx.actions.declare_file("%s.thread_safety/%s" % (ctx.label.name, src.basename))
        marks.append(mark)
        ctx.actions.run_shell(
            command = "(%s) && echo ok >%s" % (_RUN, mark.path),
            arguments = flags + [src.path],
            inputs = depset(own, transitive = [context.headers, pch.files]),
            outputs = [mark],
            mnemonic = "CppThreadSafety",
            progress_message = "Checking the locks of " + src.short_path,
        )
    return [OutputGroupInfo(thread_safety = depset(marks))]

thread_safety = aspect(
    implementation = _thread_safety_impl,
    attrs = {"_pch": attr.label(default = "//bazel/thread_safety:headers")},
)

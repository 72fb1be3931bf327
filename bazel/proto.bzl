"""C++ (messages, gRPC stubs, mocks) and descriptor sets from .proto files, with the system protoc."""

load("@rules_cc//cc:defs.bzl", "cc_library")
load("//bazel:muster.bzl", "PRECOMPILED")

ProtoTreeInfo = provider("Sources of a .proto file and of all its imports.", fields = ["sources"])

def _proto_path(f, root):
    return f.short_path[len(root) + 1:]

def _cc_proto_gen_impl(ctx):
    root = ctx.label.package  # the folder of the BUILD file is the import root
    sources = depset(ctx.files.src, transitive = [d[ProtoTreeInfo].sources for d in ctx.attr.deps])
    stem = _proto_path(ctx.file.src, root)[:-len(".proto")]
    hdrs = [ctx.actions.declare_file(stem + ".pb.h")]
    srcs = [ctx.actions.declare_file(stem + ".pb.cc")]
    args = ctx.actions.args()
    args.add("--proto_path=" + root)
    args.add("--cpp_out=" + hdrs[0].root.path + "/" + root)
    tools = []
    if ctx.attr.grpc:
        hdrs.append(ctx.actions.declare_file(stem + ".grpc.pb.h"))
        hdrs.append(ctx.actions.declare_file(stem + "_mock.grpc.pb.h"))
        srcs.append(ctx.actions.declare_file(stem + ".grpc.pb.cc"))
        args.add("--plugin=protoc-gen-grpc=" + ctx.executable._grpc.path)
        args.add("--grpc_out=generate_mock_code=true:" + hdrs[0].root.path + "/" + root)
        tools.append(ctx.executable._grpc)
    args.add(ctx.file.src)
    ctx.actions.run(
        executable = ctx.executable._protoc,
        arguments = [args],
        inputs = sources,
        outputs = hdrs + srcs,
        tools = tools,
        mnemonic = "ProtocCpp",
        progress_message = "Generating C++ for " + ctx.file.src.short_path,
    )
    return [
        DefaultInfo(files = depset(hdrs + srcs)),
        OutputGroupInfo(hdrs = depset(hdrs), srcs = depset(srcs)),
        ProtoTreeInfo(sources = sources),
    ]

_TOOLS = {
    "_protoc": attr.label(default = "@sys//:protoc", executable = True, allow_single_file = True, cfg = "exec"),
    "_grpc": attr.label(default = "@sys//:grpc_cpp_plugin", executable = True, allow_single_file = True, cfg = "exec"),
}

_cc_proto_gen = rule(
    implementation = _cc_proto_gen_impl,
    attrs = dict(
        _TOOLS,
        src = attr.label(allow_single_file = [".proto"], mandatory = True),
        deps = attr.label_list(providers = [ProtoTreeInfo]),
        grpc = attr.bool(),
    ),
)

def cc_proto(name, src, deps = [], grpc = False, alwayslink = False, **kwargs):
    """One .proto file as one cc_library.

    Args:
      name: name of the cc_library.
      src: the .proto file; its path relative to the BUILD file is its import path.
      deps: other cc_proto targets of the same package.
      grpc: also generate stubs and mocks.
      alwayslink: keep the descriptor even if no code names the messages.
      **kwargs: common attributes.
    """
    _cc_proto_gen(
        name = name + "_gen",
        src = src,
        deps = [d + "_gen" for d in deps],
        grpc = grpc,
        **kwargs
    )
    native.filegroup(name = name + "_hdrs", srcs = [name + "_gen"], output_group = "hdrs")
    native.filegroup(name = name + "_srcs", srcs = [name + "_gen"], output_group = "srcs")
    cc_library(
        name = name,
        srcs = [name + "_srcs"],
        hdrs = [name + "_hdrs"],
        alwayslink = alwayslink,
        copts = ["-w"] + PRECOMPILED,
        includes = ["."],
        deps = deps + [
            "//bazel/pch:library",
            "//services/common/rpc:message_text",  # text is UTF-8, in and out
            "@sys//:grpcpp",
        ],
        **kwargs
    )

def _descriptor_set_impl(ctx):
    out = ctx.actions.declare_file(ctx.label.name + ".pb")
    args = ctx.actions.args()
    args.add_all(["--include_imports", "--include_source_info"])
    args.add("--proto_path=" + ctx.label.package)
    args.add("--descriptor_set_out=" + out.path)
    args.add_all(ctx.files.srcs)
    ctx.actions.run(
        executable = ctx.executable._protoc,
        arguments = [args],
        inputs = ctx.files.srcs,
        outputs = [out],
        mnemonic = "ProtocDescriptors",
    )
    return [DefaultInfo(files = depset([out]))]

descriptor_set = rule(
    implementation = _descriptor_set_impl,
    attrs = dict(_TOOLS, srcs = attr.label_list(allow_files = [".proto"], mandatory = True)),
)

"""System libraries as Bazel targets: @sys//:<name>, described by pkg-config."""

def _flags(ctx, args, package):
    res = ctx.execute(["pkg-config"] + args)
    if res.return_code != 0:
        fail("pkg-config %s failed: is the package %s installed?\n%s" % (" ".join(args), package, res.stderr))
    return [f for f in res.stdout.strip().split(" ") if f]

def _version(ctx, modules, package):
    res = ctx.execute(["dpkg-query", "--show", "--showformat=${Version}", package])
    if res.return_code == 0:
        return res.stdout.strip()
    return ctx.execute(["pkg-config", "--modversion"] + modules[:1]).stdout.strip()

def _impl(ctx):
    out = [
        "# Written by //bazel:syslibs.bzl",
        "package(default_visibility = [\"//visibility:public\"])",
        "config_setting(name = \"static\", define_values = {\"link\": \"static\"})",
    ]
    for name, entry in sorted(ctx.attr.libs.items()):
        fields = [field.strip() for field in entry.split("|")] + ["", ""]
        package = fields[0]
        modules = fields[1].split(" ")
        extra = [f for f in fields[2].split(" ") if f]
        if modules == [""]:  # headers only, which pkg-config does not know
            version = _version(ctx, [package], package)
            if not version:
                fail("is the package %s installed?" % package)
            out.append("cc_library(name = %r, defines = [\"SYS_%s_VERSION=%s\"])" % (name, name.upper(), version))
            continue
        defines = [f[2:] for f in _flags(ctx, ["--cflags-only-other"] + modules, package) if f.startswith("-D")]

        # Bazel does not watch /usr/include: with the version in the command line, a package upgrade
        # compiles again, and a shared disk cache stays correct.
        version = ["SYS_%s_VERSION=%s" % (name.upper(), _version(ctx, modules, package))]

        # Bazel's toolchain links with --no-as-needed: without this a server names 77 shared libraries.
        shared = ["-Wl,--push-state,--as-needed"] + extra + _flags(ctx, ["--libs"] + modules, package) + ["-Wl,--pop-state"]
        static_defines = defines
        static = ["-Wl,--start-group"] + extra + _flags(ctx, ["--static", "--libs"] + modules, package) + ["-Wl,--end-group"]
        if fields[3]:  # Debian has no static archive: headers only
            static_defines = fields[3].split(" ")
            static = []
        out.append("""
cc_library(
    name = {name},
    defines = select({{
        ":static": {static_defines},
        "//conditions:default": {defines},
    }}),
    linkopts = select({{
        ":static": {static},
        "//conditions:default": {shared},
    }}),
)""".format(
            name = repr(name),
            defines = repr(defines + version),
            static_defines = repr(static_defines + version),
            static = repr(static),
            shared = repr(shared),
        ))

    # A precompiled header is useless after the upgrade of a package whose headers it names: these are its packages.
    packages = ["clang-19", "libclang-common-19-dev", "libc6-dev", "libprotobuf-dev", "libstdc++-12-dev", "linux-libc-dev"]
    packages += [entry.split("|")[0].strip() for name, entry in ctx.attr.libs.items() if name not in ctx.attr.not_precompiled]
    versions = [package + " " + _version(ctx, [package], package) for package in packages]
    ctx.file("versions", "\n".join(sorted(versions)) + "\n")

    # Tools are symbolic links, so that their content is part of each action's
    # key: a new protoc regenerates the code.
    for tool, package in sorted(ctx.attr.tools.items()):
        path = ctx.which(tool)
        if not path:
            fail("%s not found: install the package %s" % (tool, package))
        ctx.symlink(path, tool)
    out.append("exports_files(%s)" % repr(sorted(ctx.attr.tools.keys()) + ["versions"]))
    ctx.file("BUILD.bazel", "\n".join(out) + "\n")

system_libraries = repository_rule(
    implementation = _impl,
    attrs = {
        "libs": attr.string_dict(mandatory = True),
        "not_precompiled": attr.string_list(),  # libraries whose headers //bazel/pch does not include
        "tools": attr.string_dict(),
    },
    configure = True,
    environ = ["PKG_CONFIG_PATH"],
    local = True,
)

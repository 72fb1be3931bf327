"""The host's Go, and programs built with `go build` from Bazel."""

def _go_host_impl(ctx):
    go = ctx.which("go")
    if not go and ctx.path("/usr/local/go/bin/go").exists:
        go = ctx.path("/usr/local/go/bin/go")
    if not go:
        # Everything else still builds; only the Go targets fail.
        ctx.file("env.sh", "echo 'Go not found when Bazel started: see docs/development.md' >&2\nexit 1\n")
    else:
        lines = ["export PATH=%s:/usr/bin:/bin" % go.dirname]
        for name in ["GOCACHE", "GOMODCACHE", "GOPROXY", "GOSUMDB", "GOTOOLCHAIN"]:
            value = ctx.execute([go, "env", name]).stdout.strip()
            lines.append("export %s='%s'" % (name, value))
        lines.append("# " + ctx.execute([go, "version"]).stdout.strip())
        ctx.file("env.sh", "\n".join(lines) + "\n")
    ctx.file("BUILD.bazel", "exports_files([\"env.sh\"])\n")

go_host = repository_rule(
    implementation = _go_host_impl,
    configure = True,
    environ = ["PATH", "GOFLAGS", "GOPROXY"],
    local = True,
)

def go_program(name, main, module_srcs, **kwargs):
    """A static Go binary of the module at the root.

    Not sandboxed: it uses the developer's module and build caches, and the
    network if a module is missing there. go.sum pins every module.

    Args:
      name: the output file.
      main: the package to build, such as "./gateway/cmd/muster-gateway".
      module_srcs: the Go files and the files that they embed; go.mod and go.sum are added.
      **kwargs: common attributes.
    """
    native.genrule(
        name = name + "_build",
        srcs = module_srcs + ["//:go.mod", "//:go.sum", "@go_host//:env.sh"],
        outs = [name],
        cmd = """
. $(location @go_host//:env.sh)
out=$$PWD/$@
cd "$$(dirname "$$(readlink -f $(location //:go.mod))")"
CGO_ENABLED=0 go build -trimpath -buildvcs=false -mod=readonly -ldflags=-s -o $$out {main}
""".format(main = main),
        executable = True,
        message = "go build",
        tags = ["no-sandbox", "requires-network", "no-remote"],
        **kwargs
    )

def go_test(name, packages, module_srcs, module = ".", data = [], **kwargs):
    """Runs go vet and go test of some packages of a module in this tree.

    Args:
      name: the target.
      packages: patterns such as "./gateway/...".
      module_srcs: as for go_program.
      module: the folder of the module's go.mod, from the root.
      data: additional files for tests.
      **kwargs: common attributes of tests.
    """
    native.sh_test(
        name = name,
        srcs = ["//bazel:go_test.sh"],
        args = [module] + packages,
        data = module_srcs + data + ["//:go.mod", "//:go.sum", "@go_host//:env.sh"],
        tags = ["local", "requires-network"],
        **kwargs
    )

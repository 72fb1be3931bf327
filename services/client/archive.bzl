"""All of our own code that a library needs, as one static archive for use outside Bazel."""

# Built into Bazel 4.2; buildifier knows only where later ones have it.
_CcInfo = CcInfo  # buildifier: disable=native-cc-info

def _whole_archive_impl(ctx):
    parts = []
    for linker_input in ctx.attr.library[_CcInfo].linking_context.linker_inputs.to_list():
        for library in linker_input.libraries:
            archive = library.pic_static_library or library.static_library
            if archive:
                parts.append(archive)
    out = ctx.actions.declare_file("lib%s.a" % ctx.label.name)
    script = ctx.actions.declare_file(ctx.label.name + ".mri")
    lines = ["create " + out.path] + ["addlib " + part.path for part in parts] + ["save", "end"]
    ctx.actions.write(script, "\n".join(lines) + "\n")
    ctx.actions.run_shell(
        command = "ar -M < " + script.path,
        inputs = parts + [script],
        outputs = [out],
        mnemonic = "WholeArchive",
    )
    return [DefaultInfo(files = depset([out]), runfiles = ctx.runfiles(files = [out]))]

whole_archive = rule(
    implementation = _whole_archive_impl,
    attrs = {"library": attr.label(mandatory = True, providers = [_CcInfo])},
)

#!/usr/bin/env python3
"""Writes compile_commands.json for clang-tidy and editors from `bazel aquery`.

Run it from the repository root after `bazel build //proto/...`: generated
headers must exist. Only our own sources are listed (no generated code, no tests of
third parties), without the precompiled headers, which hide missing includes. Extra
arguments go to bazel.
"""

import json
import os
import subprocess
import sys


def main():
    flags = sys.argv[1:]
    query = 'mnemonic("CppCompile", //...)'
    out = subprocess.run(
        ["bazel", "aquery", "--output=jsonproto", "--include_artifacts=false", *flags, query],
        check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    commands = {}
    for action in json.loads(out.stdout).get("actions", []):
        args = action["arguments"]
        source = args[args.index("-c") + 1]
        if source.startswith(("bazel-out/", "external/")):
            continue
        if "-include-pch" in args:
            at = args.index("-include-pch")
            del args[at:at + 2]
        commands.setdefault(source, {
            # Not Bazel's execution root, which holds only what was built last; bazel-out is here, too.
            "directory": os.getcwd(),
            "file": os.path.join(os.getcwd(), source),
            "arguments": args,
        })
    with open("compile_commands.json", "w") as f:
        json.dump(sorted(commands.values(), key=lambda c: c["file"]), f, indent=1)
    print("compile_commands.json: %d files" % len(commands))


if __name__ == "__main__":
    main()

"""Repository rules over what is already on the machine."""

def _system_repository_impl(ctx):
    python = ctx.which("python3")
    if not python:
        fail("@%s needs python3 to ask pkg-config about installed libraries: run tools/setup, or install the package python3." % ctx.name)
    result = ctx.execute([python, ctx.path(ctx.attr._writer), ctx.path(ctx.attr._libraries), ctx.name, "."])
    if result.return_code:
        fail(result.stderr)

system_repository = repository_rule(
    doc = "A repository named like the one in the Bazel Central Registry, whose targets link an installed library.",
    implementation = _system_repository_impl,
    attrs = {
        "_libraries": attr.label(default = "//third_party/system:libraries.json"),
        "_writer": attr.label(default = "//third_party/system:write_repository.py"),
    },
    environ = ["PATH", "PKG_CONFIG_PATH"],
    local = True,
)

def _vendored_repository_impl(ctx):
    third_party = ctx.path(ctx.attr._neighbour).dirname.dirname
    for entry in third_party.get_child(ctx.name).readdir():
        ctx.symlink(entry, entry.basename)

vendored_repository = repository_rule(
    doc = "A repository over the folder of its name in fraktor's own third_party, wherever fraktor itself has been put.",
    implementation = _vendored_repository_impl,
    attrs = {"_neighbour": attr.label(default = "//third_party/system:libraries.json")},
    local = True,
)

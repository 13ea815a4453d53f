"""Which include paths a program needs that uses a library: for tests that call a compiler themselves."""

load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")

def _at_run_time(path, bin_dir):
    """Where a folder of the execution root is, seen from the workspace's runfiles."""
    if path.startswith(bin_dir + "/"):
        path = path[len(bin_dir) + 1:]
    return "../" + path[len("external/"):] if path.startswith("external/") else path

def _include_paths_impl(ctx):
    context = ctx.attr.library[CcInfo].compilation_context
    paths = []
    for path in context.includes.to_list() + context.system_includes.to_list() + context.quote_includes.to_list():
        path = _at_run_time(path, ctx.bin_dir.path)
        if path not in paths:
            paths.append(path)
    listing = ctx.actions.declare_file(ctx.label.name + ".txt")
    ctx.actions.write(listing, "".join([path + "\n" for path in paths]))
    return [DefaultInfo(
        files = depset([listing]),
        runfiles = ctx.runfiles(files = [listing], transitive_files = context.headers),
    )]

# A list of include paths, one a line, from the runfiles' workspace folder; the headers come along.
include_paths = rule(
    implementation = _include_paths_impl,
    attrs = {"library": attr.label(mandatory = True, providers = [CcInfo])},
)

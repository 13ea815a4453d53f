"""Umbrella targets: one label for several C++ libraries.

A dependent of an umbrella target may include the headers of each library that it lists in `deps`.
A cc_library without headers does not export its deps: clang's layering_check refuses such includes.

    load("//tools/build:exports.bzl", "fraktor_cc_exports")

    fraktor_cc_exports(
        name = "path",
        deps = [":actor_path", ":pid"],
    )
"""

load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")

def _fraktor_cc_exports_impl(ctx):
    return [
        cc_common.merge_cc_infos(direct_cc_infos = [dep[CcInfo] for dep in ctx.attr.deps]),
        DefaultInfo(
            files = depset(transitive = [dep[DefaultInfo].files for dep in ctx.attr.deps]),
            runfiles = ctx.runfiles(collect_default = True),
        ),
    ]

fraktor_cc_exports = rule(
    implementation = _fraktor_cc_exports_impl,
    doc = "A label for several C++ libraries. It has no headers or sources of its own.",
    attrs = {"deps": attr.label_list(mandatory = True, allow_empty = False, providers = [CcInfo])},
    provides = [CcInfo],
)

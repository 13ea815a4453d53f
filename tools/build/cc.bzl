"""The C++ rules of this repository.

They give every header the include prefix `fraktor/` (`#include "fraktor/utils/status/status_macros.h"`), so that a repository that depends
on us may have folders named like ours, and compile our own code with our warnings.

    load("//tools/build:cc.bzl", "fraktor_cc_library", "fraktor_cc_test")
"""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library", "cc_test")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")

_COPTS = [
    "-Wall",
    "-Wextra",
    "-Wshadow",
    "-Wnon-virtual-dtor",
] + select({
    "@rules_cc//cc/compiler:clang": ["-Wthread-safety"],
    "//conditions:default": [],
}) + select({
    "//tools/build:warnings_as_errors": ["-Werror"],
    "//conditions:default": [],
})

def fraktor_cc_library(name, copts = [], **kwargs):
    """A library; its headers are included as `fraktor/<package>/<header>`.

    Args:
      name: the target's name.
      copts: further compiler options, after ours.
      **kwargs: as for cc_library.
    """
    cc_library(
        name = name,
        copts = _COPTS + copts,
        include_prefix = "fraktor/" + native.package_name(),
        **kwargs
    )

def _umbrella_impl(ctx):
    runfiles = ctx.runfiles()
    for dep in ctx.attr.deps:
        runfiles = runfiles.merge(dep[DefaultInfo].default_runfiles)
    files = depset(transitive = [dep[DefaultInfo].files for dep in ctx.attr.deps])
    return [
        DefaultInfo(files = files, runfiles = runfiles),
        cc_common.merge_cc_infos(direct_cc_infos = [dep[CcInfo] for dep in ctx.attr.deps]),
    ]

# One name for several libraries: a target that depends on the umbrella may include the headers of
# each library in `deps`. A cc_library with only `deps` is no substitute: clang's layering_check
# rejects includes through it.
fraktor_cc_umbrella = rule(
    implementation = _umbrella_impl,
    attrs = {"deps": attr.label_list(mandatory = True, providers = [CcInfo])},
    provides = [CcInfo],
)

def fraktor_cc_test(name, deps = [], copts = [], size = "small", **kwargs):
    """A GoogleTest test; gtest_main is linked by itself.

    Args:
      name: the target's name, which ends in _test.
      deps: what it tests.
      copts: further compiler options, after ours.
      size: as for cc_test; small by default.
      **kwargs: as for cc_test.
    """
    cc_test(
        name = name,
        size = size,
        copts = _COPTS + copts,
        deps = deps + ["@com_google_googletest//:gtest_main"],
        **kwargs
    )

def fraktor_cc_binary(name, copts = [], **kwargs):
    """A program.

    Args:
      name: the target's name.
      copts: further compiler options, after ours.
      **kwargs: as for cc_binary.
    """
    cc_binary(
        name = name,
        copts = _COPTS + copts,
        **kwargs
    )

def fraktor_cc_benchmark(name, deps = [], copts = [], tags = [], **kwargs):
    """A Google Benchmark program; its main function is linked by itself. `tools/bench` finds it by its tag.

    Args:
      name: the target's name, which ends in _benchmark.
      deps: what it measures.
      copts: further compiler options, after ours.
      tags: as for cc_binary.
      **kwargs: as for cc_binary.
    """
    cc_binary(
        name = name,
        testonly = True,
        copts = _COPTS + copts,
        tags = tags + ["benchmark"],
        deps = deps + ["@com_github_google_benchmark//:benchmark_main"],
        **kwargs
    )

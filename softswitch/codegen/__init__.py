"""A program's model to C: :func:`generate`. The C includes ``runtime/v1model.h`` and defines ``sw_the_program``."""

from __future__ import annotations

from collections.abc import Sequence

from softswitch import model as m
from softswitch.codegen.controls import ControlGenerator
from softswitch.codegen.deparser import DeparserGenerator
from softswitch.codegen.descriptors import descriptors
from softswitch.codegen.names import Layout, declare_phv, unique
from softswitch.codegen.parser import ParserGenerator
from softswitch.codegen.standard import standard_metadata
from softswitch.codegen.statements import Indices
from softswitch.codegen.unspecified import fill_invalid_headers
from softswitch.codegen.values import Widths
from softswitch.json_node import ProgramError

__all__ = ["generate"]


def generate(program: m.Program) -> str:
    """C source of the program. Raises :class:`softswitch.json_node.ProgramError` for what is not supported."""
    try:
        return _generate(program)
    except RecursionError:
        raise ProgramError("", "expressions are nested too deeply") from None


def _generate(program: m.Program) -> str:
    layout, widths = Layout(program), Widths()
    indices = Indices(program, unique)
    deparser = DeparserGenerator(layout, widths, indices)
    controls = ControlGenerator(layout, widths, indices)
    body: list[str] = [*standard_metadata(program, layout)]
    for calculation in program.calculations.values():
        body += deparser.calculation(calculation)
    for profile in program.profiles.values():
        if profile.algo is not None:
            body += deparser.selector(profile)
    body += deparser.verify_checksums()
    body += ParserGenerator(layout, widths, indices).generate()
    for action in program.actions.values():
        body += controls.action(action)
    for table in program.tables.values():
        body += controls.table(table)
    body += controls.pipeline("ingress", program.ingress)
    body += controls.pipeline("egress", program.egress)
    body += deparser.deparse() + deparser.digests() + deparser.field_lists()
    head = [
        "/* Made by softswitch from BMv2 JSON. */",
        f"#define W_LIMBS {widths.limbs}",
        '#include "v1model.h"',
        "",
        *_constants(program, indices),
        *declare_phv(layout),
    ]
    body += fill_invalid_headers(program, layout)
    tail = ['#include "v1model_pipeline.h"', "", *descriptors(program, indices, deparser)]
    return "\n".join([*head, *body, *tail]) + "\n"


def _constants(program: m.Program, indices: Indices) -> Sequence[str]:
    """The enums that number tables, actions and state."""
    groups = [
        list(indices.tables.values()),
        [f"ACTION_{indices.actions[i]}" for i in program.actions],
        list(indices.counters.values()),
        list(indices.meters.values()),
        list(indices.registers.values()),
        list(indices.profiles.values()),
        list(indices.value_sets.values()),
    ]
    return [f"enum {{ {', '.join(group)} }};" for group in groups if group] + [""]

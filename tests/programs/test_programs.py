"""Random programs behave as in PyTorch."""

import os

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings

import cygrad
from tests.programs.compare import difference
from tests.programs.machine import Machine
from tests.programs.writer import DRAFTS, write
from tests.reference import torch

pytestmark = pytest.mark.slow

PROGRAMS = int(os.environ.get("CYGRAD_PROGRAMS", "200"))


@settings(max_examples=PROGRAMS, derandomize="CYGRAD_PROGRAMS" not in os.environ, deadline=None, database=None,
          suppress_health_check=list(HealthCheck), phases=(Phase.generate, Phase.shrink))
@given(DRAFTS)
def test_random_programs_behave_as_with_torch(drafts):
    machine = Machine(cygrad)
    program = write(drafts, machine)
    found = difference(machine.notes, program, Machine(torch), event)
    if found:
        pytest.fail(f"{found}\nin the program\n" + "\n".join(f"  {line}" for line in program))

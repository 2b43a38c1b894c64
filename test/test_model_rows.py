"""What a row of the registry says is true of its model, and reaches the settings by itself."""

import dataclasses
import inspect
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from robots import QUADRUPED, QUADRUPED_FEET, point_kinematics

from contact_id_controller import RobotModel
from contact_id_controller.control.controller import SUPPLIED, Controller
from contact_id_controller.exceptions import ConfigurationError, UnknownModelError
from contact_id_controller.models import (
    ROWS,
    ContactModel,
    Normal,
    Tangential,
    names,
    register,
    row_of,
    solve,
)
from contact_id_controller.models.options import option
from contact_id_controller.models.registry import (
    MODELS,
    available,
    model_parameters,
    names_text,
)
from contact_id_controller.settings.controller import TABLE, ControllerSettings
from contact_id_controller.settings.specification import settings_of, table_of
from contact_id_controller.state import RobotState
from experiments.benchmark import model_laws, robustness, speed

POSTURE = np.array([0.1, 0.8, 1.2, -0.1, -0.8, -1.2, -0.1, -0.8, -1.2, 0.1, 0.8, 1.2])
VISCOSITY = [20.0, 30.0, 40.0, 50.0]
each_row = pytest.mark.parametrize("row", ROWS.values(), ids=str)


def settings(options=None, **changes):
    mapping = {"urdf": QUADRUPED, "contact_frames": QUADRUPED_FEET, **changes}
    return ControllerSettings.from_mapping(mapping, options=options or {})


def sliding_step(chosen):
    """One step of a controller whose robot stands on the ground and slides: result, velocities.

    The velocities (4, 3) of the feet, m/s, world frame, at the period's end, by Pinocchio.
    """
    robot = RobotModel.from_urdf(QUADRUPED)
    controller = Controller(robot, chosen)
    q = robot.configuration([0, 0, 0, 0, 0, 0, 1], POSTURE)
    v = np.zeros(robot.nv)
    v[:2] = 0.3, -0.2
    controller.reset(RobotState(0.0, q, v))
    controller.step(RobotState(0.0, q, v))
    q[2] -= controller.feet.gaps.max()
    result = controller.step(RobotState(0.001, q, v))
    assert result.contact.all()
    J, _ = point_kinematics(robot, q, v, QUADRUPED_FEET)
    return result, (J @ result.solution.velocity).reshape(-1, 3)


def test_viscous_friction_set_in_yaml_rubs_as_much_as_it_says():
    result, end = sliding_step(settings(friction="viscous", solver="lcp", viscosity=VISCOSITY))
    assert result.status == "solved"
    expected = -np.array(VISCOSITY)[:, None] * end[:, :2]
    np.testing.assert_allclose(result.forces[:, :2], expected, rtol=1e-3, atol=2e-3)
    assert np.abs(expected).min() > 0.5


def test_viscous_friction_without_viscosity_is_refused():
    with pytest.raises(ConfigurationError, match="'viscosity' is 0.*friction viscous"):
        settings(friction="viscous", solver="lcp")
    with pytest.raises(ConfigurationError, match=r"'viscosity' has 2 values.*1 or 4"):
        settings(viscosity=[1.0, 2.0])
    for gone in ({"form": "magic"}, {"options": {"form": "explicit"}}):
        with pytest.raises(
            ConfigurationError, match="'form' is gone: viscous friction is implicit"
        ):
            settings(**gone)


@each_row
def test_row_names_the_options_of_its_model_and_their_defaults(row):
    if row.feedback_only:
        assert row.pair not in available() and row.options == ()
        return
    assert list(inspect.signature(row.function).parameters) == ["problem", "options", "warm_start"]
    assert row.accepted == vars(row.defaults).keys()
    for one in row.options:
        assert not one.supplied or (one.keyword in SUPPLIED and one.parameter is None)
        one.refuse(one.value)  # finds nothing wrong with its own default
    assert row.choose_when


@each_row
def test_limits_of_a_row_fit_each_other(row):
    assert row.predicts_forces == (row.tangential is not Tangential.NONE)
    assert not row.engine or (row.predicts_forces and not row.holds_touching)
    assert row.takes("regularisation") or not row.yields
    assert row.without_slip is None or ROWS[row.without_slip].tangential is Tangential.NO_SLIP
    assert 0.0 < row.accuracy <= 1e-3 and 0.0 < row.solved_share <= 1.0


def test_every_option_with_a_parameter_is_in_the_table_of_the_controller():
    table = {spec.name: spec for spec in TABLE}
    for row in ROWS.values():
        for one in row.options:
            if one.parameter is not None:
                assert table[one.parameter.name] == one.parameter, f"{row} {one.keyword}"
    assert [spec.name for spec in model_parameters()] == [
        spec.name for spec in TABLE if spec.name in {p.name for p in model_parameters()}
    ]
    again = settings_of("Again", TABLE)
    assert table_of(again) == TABLE


def test_models_are_listed_and_their_parameters_read_without_loading_a_kernel():
    code = (
        "import sys; from contact_id_controller.models import available, options;"
        "from contact_id_controller.models.registry import model_parameters;"
        "assert options('coulomb', 'qp') and len(available()) > 9 and model_parameters();"
        "assert not {'numba', 'pinocchio', 'numpy'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_table_of_functions_has_every_pair_that_solve_accepts():
    assert list(MODELS) == available()
    assert all(MODELS[pair] is ROWS[pair].function for pair in MODELS)


def test_registered_model_is_solved_and_followed_with_the_defaults_of_its_options(monkeypatch):
    seen = {}

    def halved(problem, options, warm_start):
        seen["share"] = options.share
        return solve(problem, "none", "none")

    row = ContactModel(
        "half",
        "mine",
        "never",
        Normal.NONE,
        Tangential.NONE,
        options=(option("share", "number", 0.5, "How much."),),
        home=halved,
    )
    monkeypatch.setitem(ROWS, row.pair, row)
    assert row_of("half", "mine") is row
    sliding_step(dataclasses.replace(settings(), friction="half", solver="mine"))
    assert seen == {"share": 0.5}


def test_names_for_type_checkers_are_those_of_the_rows():
    assert Path(names.__file__).read_text(encoding="utf-8") == names_text()
    assert set(product(get_args(names.Friction), get_args(names.Solver))) >= set(available())
    assert names.Options.__annotations__.keys() == set().union(*(r.accepted for r in ROWS.values()))


def test_benchmarks_try_every_row_and_those_named_alone():
    assert {str(row) for row in ROWS.values() if row.predicts_forces} < set(speed.MODELS)
    assert speed.LARGEST["coulomb/lcp_min_diff"] == ROWS["coulomb", "lcp_min_diff"].most_contacts
    tried = robustness.models()
    assert set(tried) == {
        row.pair for row in ROWS.values() if row.predicts_forces and not row.holds_touching
    }
    assert robustness.models(["no_slip/lcp"]) == [("no_slip", "lcp")]
    for refuse in (robustness.models, lambda names: speed.measure([4], None, names)):
        with pytest.raises(ConfigurationError, match="'coulomb/qpp', must be of.*coulomb/qp"):
            refuse(["coulomb/qpp"])
    rows = speed.measure([1], None, ["no_slip/lcp"])["rows"]
    assert list(rows) == ["no_slip/lcp"] and rows["no_slip/lcp"][1]["status"] == "solved"


def test_exact_cone_and_its_pyramids_are_judged_apart():
    """Forces between the inscribed pyramid and the cone, and motion between their duals."""
    forces = np.array([[1.0, 0.5, 0.5]])
    assert model_laws.outside_cone(forces, np.array([0.6]), 4) > 0.1
    assert model_laws.outside_cone(forces, np.array([0.72]), model_laws.EXACT) == 0.0
    assert model_laws.outside_cone(forces, np.array([0.7]), model_laws.EXACT) > 1e-3
    slip = np.array([[3.0, 4.0]])
    assert model_laws._against(slip, model_laws.EXACT) == pytest.approx(5.0)
    assert model_laws._against(slip, 4) == pytest.approx(4.0)


def test_unknown_models_and_doubles_are_refused_by_name():
    with pytest.raises(UnknownModelError, match="no solver 'qcp'.*coulomb/qcqp.*none/pid"):
        row_of("coulomb", "qcp")
    with pytest.raises(UnknownModelError, match="none/pid is feedback alone.*coulomb/qp"):
        solve(None, "none", "pid")
    with pytest.raises(UnknownModelError, match="coulomb/qp exists already"):
        register(ROWS["coulomb", "qp"])
    with pytest.raises(ConfigurationError, match="'live_models'.*out of coulomb/qp"):
        settings(live_models=["coulomb/magic"])


def test_parameter_of_another_meaning_is_refused():
    row = ContactModel(
        "half", "mine", "never", Normal.NONE, Tangential.NONE,
        options=(option("edges", "number", 0.5, "Else.", parameter="friction_edges"),),
    )  # fmt: skip
    with pytest.raises(UnknownModelError, match="'friction_edges' of half/mine exists already"):
        register(row)
    assert row.pair not in ROWS

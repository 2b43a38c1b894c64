"""figaroh on the rows of the KUKA's logs that `identify_logs.py` fits, judged on those that it judges.

    git clone https://github.com/kjyv/FloBaRoID KUKA                            # with git-lfs, or commit 4e2e5a29
    python benchmarks/figaroh_same_rows.py rows KUKA 3 rows.npz                 # of log 3, in our environment
    python3 -m venv FIGAROH && FIGAROH/bin/pip install figaroh==1.0.2
    FIGAROH/bin/python benchmarks/figaroh_same_rows.py fit rows.npz KUKA

Printed for each joint: rms, N·m, of its base parameters by least squares, and of its fit with physically consistent links.
Viscous and dry friction, rotors and offsets are fitted in both; every third row is. Measured: results/real_logs.md.
"""

from __future__ import annotations

import sys

import numpy as np

URDF, OF_FIT = "model/kuka_lwr4.urdf", slice(None, None, 3)


def rows(copy: str, which: str, target: str) -> None:
    """Write what is fitted (a) and judged (b)."""
    from pathlib import Path

    from identify_logs import KUKA, kuka

    from contact_id_controller.identification.identify import identify, samples_of, split
    from contact_id_controller.identification.smoothing import moving, smoothed

    log = kuka(Path(copy), int(which))
    found = identify(log, str(Path(copy) / KUKA[1]))
    arrays = {}
    for side, part in zip("ab", split(samples_of(found.robot, log)[0], 0.3)):
        motion = smoothed(part, found.cutoff_hz, found.source)
        arrays |= {f"{key}_{side}": getattr(motion, key) for key in ("q", "v", "a", "torque")}
        arrays[f"moving_{side}"] = moving(motion)
    np.savez(target, **arrays)


def fit(source: str, copy: str) -> None:
    """Fit (a), print what is left of (b)."""
    import pinocchio as pin
    from figaroh.identification import parameter, physical_fit
    from figaroh.tools.regressor import build_regressor_basic

    class Robot:
        model = pin.buildModelFromUrdf(f"{copy}/{URDF}")
        data = model.createData()

    model, logged = Robot.model, np.load(source)
    settings = dict.fromkeys(("has_friction", "has_actuator_inertia", "has_joint_offset"), True)
    settings |= {"is_joint_torques": True, "is_external_wrench": False, "force_torque": None}
    settings["act_idxv"] = list(range(model.nv))
    stated = parameter.get_standard_parameters(model, settings)
    stated |= parameter.add_standard_additional_parameters(model, settings)
    fitted, judged = (
        build_regressor_basic(Robot, *(logged[f"{key}_{side}"][some] for key in "qva"), settings)
        for side, some in (("a", OF_FIT), ("b", slice(None)))
    )
    torque, moves = (logged[f"{key}_a"][OF_FIT].T.ravel() for key in ("torque", "moving"))
    problem = physical_fit.build_problem(
        fitted[moves],
        torque[moves],
        list(stated),
        list(model.names)[1:],
        prior=np.array(list(stated.values()), dtype=float),
    )
    base = judged[:, list(problem.base_indices)] @ problem.phi_ols
    physical = judged @ np.array(physical_fit.solve_direct_effort_fit(problem).theta)
    for name, predicted in (("least squares", base), ("physically consistent", physical)):
        error = logged["torque_b"] - predicted.reshape(model.nv, -1).T
        left = np.where(logged["moving_b"], error, np.nan)
        print(name, np.sqrt(np.nanmean(left**2, axis=0)).round(3))


if __name__ == "__main__":
    {"rows": rows, "fit": fit}[sys.argv[1]](*sys.argv[2:])

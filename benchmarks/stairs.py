"""Bipeds on stairs and slopes whose map their planner knows: which fall, and how near their soles come to edges.

    python benchmarks/stairs.py --robot talos --steps 3 --speed 0.2 0.3 --seeds 5
    python benchmarks/stairs.py --robot talos g1 --slope 8 0 --slope -8 0 --slope 0 8
    python benchmarks/stairs.py --robot talos --steps 1 --sensors good
    python benchmarks/stairs.py --robot talos --steps 3 --picture stairs.gif

MuJoCo, one process, friction 0.6; the true state, or with ``--sensors`` what an estimator makes of them. Steps of 10 cm
up and down, treads of 30 cm, the highest one of 90; the first edge is .45 m ahead and .06 m more with each seed. Slopes in
degrees, along and across, begin after .4 m and go on.
*Least clearance*: of all points of a sole above the map while it moves faster than .1 m/s along it. *On edges*: landings,
of all, below which the ground of the sole is not one plane to 5 mm. Measured: results/walks.md.
"""

import argparse
import itertools
import math
import tempfile
from pathlib import Path

import numpy as np
import pinocchio as pin
import yaml
from driven_bipeds import Commands, draw, drive

from contact_id_controller.geometry import FootContacts, HalfSpace, read_ground
from contact_id_controller.runs.one_process import Period, controller_settings
from contact_id_controller.settings.robot_files import robots

RISE_M, TREAD_M, TOP_M, WIDE_M = 0.1, 0.3, 0.9, 2.0
FIRST_M, LATER_M, BEYOND_M = 0.45, 0.06, 0.6
SLOPE_M, TURNED_M, CELL_M = 0.4, 0.6, 0.1
MOVES_M_S, PLANE_M = 0.1, 0.005
LOOKS, BEARS, BEGINS_S = 5, 0.1, 1.0
"""Periods between two looks; load of a foot that has landed, as a share of the weight; time to begin to walk."""


def stairs(steps: int, first_m: float) -> tuple[dict, float]:
    """Steps up from ``first_m`` on and down again; how far they go, m."""
    boxes, x = [], first_m
    for height in [*range(1, steps + 1), *range(steps - 1, 0, -1)]:
        length, top = TOP_M if height == steps else TREAD_M, RISE_M * height
        boxes.append({"size_m": [length, WIDE_M, top], "top_m": [x + 0.5 * length, 0.0, top]})
        x += length
    return {"boxes": boxes, "margin_m": 3.0}, x


def slope(along_deg: float, across_deg: float) -> dict:
    """Level ground, then a slope; across it grows within ``TURNED_M``: robots begin on level soles."""
    x, y = np.arange(-2.0, 6.0, CELL_M), np.arange(-2.0, 2.0, CELL_M)
    along, across = (math.tan(math.radians(angle)) for angle in (along_deg, across_deg))
    grown = np.clip((x - SLOPE_M) / TURNED_M, 0.0, 1.0)
    heights = along * np.maximum(x - SLOPE_M, 0.0)[:, None] + across * grown[:, None] * y
    return {"x_m": x.tolist(), "y_m": y.tolist(), "heights_m": heights.tolist()}


class Soles:
    """What soles do above a map, by states and forces; looked at each ``LOOKS``-th period.

    Attributes:
        clearance_m: least height of a sole that moves.  landings, astride: number of these, and of those on no one plane.
    """

    def __init__(self, robot: str, ground: Path) -> None:
        settings = controller_settings(str(robots()[robot]))
        self.field, self.robot = read_ground(ground), settings.robot()
        self.contacts = FootContacts(self.robot, settings.feet, HalfSpace())
        self.data, self.count = self.robot.model.createData(), 0
        self.aloft, self.last = np.zeros(2, dtype=bool), None
        self.clearance_m, self.landings, self.astride = math.inf, 0, 0
        steps = np.linspace(-0.5, 0.5, 9)
        self.grid = np.stack(np.meshgrid(steps, steps, indexing="ij"), axis=-1).reshape(-1, 2)

    def look(self, period: Period) -> None:
        """At one period."""
        self.count += 1
        if self.count % LOOKS:
            return
        pin.forwardKinematics(self.robot.model, self.data, period.before.q)
        self.contacts.update(self.data)
        corners = self.contacts.points.reshape(2, 4, 3)
        middles, last = corners.mean(axis=1), self.last
        self.last = middles
        for foot, forces in enumerate(period.forces[:, 2].reshape(2, 4)):
            along, across = corners[foot, 0] - corners[foot, 2], corners[foot, 0] - corners[foot, 1]
            points = middles[foot] + self.grid @ np.stack([along, across])
            ground = self.field.heights_at(points[:, 0], points[:, 1])
            bears = forces.sum() > BEARS * self.robot.weight
            if self.aloft[foot] and bears:
                self._land(ground)
            self.aloft[foot] = not bears
            if last is None or forces.any():
                continue
            away = np.linalg.norm(middles[foot, :2] - last[foot, :2])
            if away > MOVES_M_S * LOOKS * period_s(period):
                self.clearance_m = min(self.clearance_m, float((points[:, 2] - ground).min()))

    def _land(self, ground: np.ndarray) -> None:
        middle = ground - ground.mean()
        plane = np.linalg.lstsq(self.grid, middle, rcond=None)[0]
        self.landings += 1
        self.astride += bool(np.abs(middle - self.grid @ plane).max() > PLANE_M)


def period_s(period: Period) -> float:
    """Length of a period, s."""
    return period.after.time_s - period.before.time_s


def main() -> None:
    """Print a row for each run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robot", nargs="+", required=True)
    parser.add_argument("--steps", type=int, default=0, help="up, and as many down")
    parser.add_argument("--slope", type=float, nargs=2, action="append", default=[])
    parser.add_argument("--speed", type=float, nargs="+", default=[0.25])
    parser.add_argument(
        "--seeds", type=int, default=1, help="number of distances to the first edge"
    )
    parser.add_argument("--seconds", type=float, default=7.0, help="on slopes")
    parser.add_argument("--sensors", help="walk on an estimate from these, such as good")
    parser.add_argument("--picture", type=Path, help="the last run, a GIF")
    chosen = parser.parse_args()
    grounds = [(f"slope {a:g}, {b:g}", slope(a, b), None) for a, b in chosen.slope]
    for seed in range(chosen.seeds if chosen.steps else 0):
        first_m = FIRST_M + LATER_M * seed
        grounds.append((f"stairs, edge at {first_m:.2f} m", *stairs(chosen.steps, first_m)))
    titles = "robot, ground", "m/s", "walked", "end: x, y, m", "least clearance, mm", "on edges"
    titles += ("limits touched, %",)
    print(f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}")
    with tempfile.TemporaryDirectory() as folder:
        for robot, speed, (name, content, way_m) in itertools.product(
            chosen.robot, chosen.speed, grounds
        ):
            path = Path(folder) / "ground.yaml"
            path.write_text(yaml.safe_dump(content))
            soles = Soles(robot, path)
            seconds = chosen.seconds if way_m is None else (way_m + BEYOND_M) / speed + BEGINS_S
            commands = Commands(np.zeros(3), 0, np.array([speed, 0.0, 0.0]))
            ground = {"ground_file": str(path), "ground": "map"}
            file = robots()[robot]
            how = {"ground": ground, "look": soles.look, "sensors": chosen.sensors}
            run, record, _ = drive(file, seconds, commands, **how)
            x, y = record.q[-1, :2]
            walked = f"{record.time_s[-1]:.1f} s" + (", fell" if record.fell else "")
            cells = f"{robot}, {name}", f"{speed:g}", walked, f"{x:.2f}, {y:.2f}"
            cells += (f"{1e3 * soles.clearance_m:.0f}", f"{soles.astride} of {soles.landings}")
            cells += (f"{100 * record.saturated.any(axis=1).mean():.1f}",)
            print(f"| {' | '.join(cells)} |", flush=True)
        if chosen.picture:
            draw(run, record, chosen.picture)


if __name__ == "__main__":
    main()

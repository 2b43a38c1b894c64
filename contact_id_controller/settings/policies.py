"""SROS2 policies: which node may publish, subscribe, serve and call what, as they are wired on a robot.

Source: ROS 2 access control policies, https://design.ros2.org/articles/ros2_access_control_policies.html
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from contact_id_controller.exceptions import ConfigurationError
from contact_id_controller.settings.command_interfaces import DEFAULT, INTERFACES, TOPICS
from contact_id_controller.settings.endpoints import NODES, OPERATOR, Endpoints, endpoints_of

COMMAND = "contact_id policies --write"
PATH = "config/sros2/policy.xml"

ENCLAVE = "/contact_id"
"""Above the enclaves of all nodes."""


class Wiring(NamedTuple):
    """How the nodes are connected.

    Attributes:
        interface: ``command_interface`` of all nodes.
        group: group controller of ros2_control that takes the commands; empty: none.
        watchdog: whether commands pass through the command watchdog.
        namespace: of all nodes, such as `/left`; empty: none.
    """

    interface: str = DEFAULT
    group: str = ""
    watchdog: bool = True
    namespace: str = ""


def policy(wiring: Wiring) -> str:
    """The SROS 2 policy of all nodes and of an operator, as XML.

    Raises:
        ConfigurationError: invalid names.
    """
    for what, name in (("ros2_control", wiring.group), ("namespace", wiring.namespace)):
        if not all(part.isidentifier() for part in name.strip("/").split("/") if name):
            raise ConfigurationError(f"{what} is {name!r}, must be names of ROS, such as left/arm")
    actors = {name: endpoints_of(name) for name in NODES} | {"operator": OPERATOR}
    body = "".join(_enclave(name, found, wiring) for name, found in actors.items())
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        "<!-- Written by contact_id policies, see docs/security.md. -->\n"
        f'<policy version="0.2.0">\n  <enclaves>\n{body}  </enclaves>\n</policy>\n'
    )


def table() -> str:
    """Topics and services of each node of this package, except those of every node; Markdown."""
    lines = ["| node | subscribes to | publishes | serves | calls |", "|---|---|---|---|---|"]
    for node, found in NODES.items():
        cells = [found.subscribes, found.publishes, found.serves, found.calls]
        words = (", ".join(f"`{name}`" for name in names) for names in cells)
        lines.append(f"| `{node}` | {' | '.join(words)} |")
    return "\n".join(lines) + "\n"


def _enclave(node: str, found: Endpoints, wiring: Wiring) -> str:
    """The SROS 2 enclave of a node in XML: the topics and services that it may use, nothing else."""
    own = _remapped(node, wiring)
    lists = []
    for tag, one, rule, names in (
        ("topics", "topic", "publish", found.publishes),
        ("topics", "topic", "subscribe", found.subscribes),
        ("services", "service", "reply", found.serves),
        ("services", "service", "request", found.calls),
    ):
        full = sorted(set(_full(names, node, wiring, own)))
        lines = "".join(f"            <{one}>{escape(name)}</{one}>\n" for name in full)
        if lines:
            lists.append(f'          <{tag} {rule}="ALLOW">\n{lines}          </{tag}>\n')
    namespace = "/" + wiring.namespace.strip("/")
    return (
        f"    <enclave path={quoteattr(f'{ENCLAVE}/{node}')}>\n      <profiles>\n"
        f"        <profile ns={quoteattr(namespace)} node={quoteattr(node)}>\n"
        f"{''.join(lists)}        </profile>\n      </profiles>\n    </enclave>\n"
    )


def _remapped(node: str, wiring: Wiring) -> Mapping[str, str | None]:
    """Topic of commands as a node names it -> its name in this wiring; None if the wiring does not use it.

    With the watchdog the controller publishes to ``<topic>_in``, from which the watchdog forwards.
    """
    row, group = INTERFACES[wiring.interface], wiring.group.strip("/")
    topic = row.topic
    to_robot = row.taker.topic_of(group) if group else topic
    names: dict[str, str | None] = {}
    for candidate in TOPICS:
        used = candidate == topic
        first = f"{topic}_in" if node == "controller" and wiring.watchdog else to_robot
        names[candidate] = first if used else None
        names[f"{candidate}_in"] = f"{topic}_in" if used and wiring.watchdog else None
    return names


def _full(
    names: Iterable[str], node: str, wiring: Wiring, own: Mapping[str, str | None]
) -> Iterable[str]:
    """Full names of topics or services."""
    root, group = "/" + wiring.namespace.strip("/"), wiring.group.strip("/")
    root = root.rstrip("/")
    for each in names:
        name = own.get(each, each)
        if name is None:
            continue
        if name.startswith("*/"):
            # The group controller, and its manager beside it.
            above = f"{group.rpartition('/')[0]}/".lstrip("/")
            if group:
                yield f"/{group}/{name[2:]}"
                yield f"/{above}controller_manager/{name[2:]}"
        elif name.startswith("~/"):
            yield f"{root}/{node}/{name[2:]}"
        else:
            yield name if name.startswith("/") else f"{root}/{name}"

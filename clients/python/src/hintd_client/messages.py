"""Requests and answers as Python values; the wire's messages are beneath them and can be reached (`wire`)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ._generated.hadoop.yarn import yarn_protos_pb2 as yarn
from ._generated.hintd.v1 import common_pb2, placement_pb2


@dataclass(frozen=True)
class Attempt:
    """An application attempt, as YARN names it."""

    application_id: str
    number: int = 1


@dataclass(frozen=True)
class Group:
    """Containers alike. `priority` is the scheduler key's: one of its own for each group."""

    name: str
    count: int
    memory_mb: int
    vcores: int = 1
    role: str = ""
    priority: int = 0
    label: str = ""
    input_paths: Sequence[str] = ()
    # Kinds beside memory and vcores, by YARN's name.
    resources: Mapping[str, int] = field(default_factory=dict)

    def to_wire(self, position: int) -> placement_pb2.TaskGroup:
        """The wire's form; a group without a priority gets its position."""
        kinds = [yarn.ResourceInformationProto(key=key, value=value) for key, value in self.resources.items()]
        size = yarn.ResourceProto(memory=self.memory_mb, virtual_cores=self.vcores, resource_value_map=kinds)
        return placement_pb2.TaskGroup(
            name=self.name,
            role=self.role,
            count=self.count,
            resource=size,
            priority=self.priority or position,
            node_label_expression=self.label,
            input_paths=self.input_paths,
        )


@dataclass(frozen=True)
class Edge:
    """What one group's tasks send another's, all together; a group may send to itself."""

    source: str
    target: str
    bytes: int
    one_to_one: bool = False

    def to_wire(self) -> placement_pb2.GroupEdge:
        """The wire's form."""
        pattern = placement_pb2.EDGE_PATTERN_ONE_TO_ONE if self.one_to_one else placement_pb2.EDGE_PATTERN_ALL_TO_ALL
        # `from` is a keyword of Python's.
        return placement_pb2.GroupEdge(**{"from": self.source}, to=self.target, pattern=pattern, bytes=self.bytes)


@dataclass(frozen=True)
class Request:
    """What an application asks for.

    `request_id` makes repeats safe: the same id and content give the same answer and take nothing twice. It is drawn
    when the request is made, so keep the object (or the id) for repeats, and make a new one for a new question.
    """

    application_id: str
    groups: Sequence[Group]
    attempt: int = 1
    queue: str = "default"
    user: str = ""
    framework: str = ""
    edges: Sequence[Edge] = ()
    input_paths: Sequence[str] = ()
    policy: str = ""
    # All containers at once or none, in place of as many as fit.
    all_or_none: bool = False
    recurring_job_key: str = ""
    seed: int | None = None
    # YARN's ask table, where the answer's `asks` should replace it.
    asks: Sequence[yarn.ResourceRequestProto] = ()
    request_id: str = field(default_factory=lambda: uuid.uuid4().hex)

    def to_wire(self) -> placement_pb2.RequestHintsRequest:
        """The wire's form, without a deadline."""
        wire = placement_pb2.RequestHintsRequest(
            request_id=self.request_id,
            application_id=self.application_id,
            attempt=self.attempt,
            queue=self.queue,
            user=self.user,
            framework=self.framework,
            asks=self.asks,
            groups=[group.to_wire(position) for position, group in enumerate(self.groups, 1)],
            edges=[edge.to_wire() for edge in self.edges],
            input_paths=self.input_paths,
            policy=self.policy,
            recurring_job_key=self.recurring_job_key,
            gang=placement_pb2.GANG_ALL if self.all_or_none else placement_pb2.GANG_UP_TO,
        )
        if self.seed is not None:
            wire.seed = self.seed
        return wire


@dataclass(frozen=True)
class Hint:
    """`count` containers of `group`, the first of them its container `first_index`, should go to `host`."""

    group: str
    host: str
    count: int
    first_index: int
    # Next best hosts, best first.
    fallbacks: tuple[str, ...]
    # Host's and fallbacks' racks.
    racks: tuple[str, ...]
    # One for each container; empty: no room is held.
    leases: tuple[int, ...]
    # 0 to 1: falls with the age of what the hint was worked out from.
    confidence: float


@dataclass(frozen=True)
class Answer:
    """Hints, or none and `why_none`. `asks` is the table to send to YARN: the request's own where there are no hints."""

    hints: tuple[Hint, ...]
    asks: tuple[yarn.ResourceRequestProto, ...]
    decision_id: str = ""
    policy: str = ""
    # Shows that who has it is the attempt's: for another process that releases its leases or follows it.
    token: str = field(default="", repr=False)
    # Inputs that were missing or old: no_topology, no_blocks, ...
    degraded: tuple[str, ...] = ()
    why_none: str = ""
    # All that the daemon said; `None` where it said nothing.
    wire: common_pb2.HintSet | None = None

    @property
    def leases(self) -> tuple[int, ...]:
        """Every lease of the answer."""
        return tuple(lease for hint in self.hints for lease in hint.leases)

    @classmethod
    def of(cls, response: placement_pb2.RequestHintsResponse) -> Answer:
        """From the wire."""
        found = response.hints
        hints = tuple(
            Hint(
                group=hint.group,
                host=hint.host,
                count=hint.count,
                first_index=hint.first_index,
                fallbacks=tuple(hint.fallbacks),
                racks=tuple(hint.racks),
                leases=tuple(hint.lease_ids),
                confidence=hint.confidence,
            )
            for hint in found.hints
        )
        return cls(
            hints=hints,
            asks=tuple(found.asks),
            decision_id=found.decision_id,
            policy=found.policy,
            token=response.token,
            degraded=tuple(found.degraded),
            why_none=f"withheld: {found.withheld.reason}" if not hints and found.HasField("withheld") else "",
            wire=found,
        )

    @classmethod
    def none(cls, request: Request, why: str) -> Answer:
        """No hints: the request's asks go to YARN as they came."""
        return cls(hints=(), asks=tuple(request.asks), why_none=why)

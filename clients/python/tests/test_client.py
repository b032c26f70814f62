"""The client against a real daemon."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

grpc = pytest.importorskip("grpc", reason="grpcio can't be had here")
pytest.importorskip("hintd_client._generated", reason="not generated: python generate.py (needs grpcio-tools)")

from hintd_client import Answer, Attempt, Client, Edge, Group, OutOfTime, Refused, Request  # noqa: E402
from hintd_client._generated.hadoop.yarn import yarn_protos_pb2 as yarn  # noqa: E402
from hintd_client._generated.hintd.v1 import common_pb2, placement_pb2  # noqa: E402

from hintd_client.secret import Secret  # noqa: E402

from .daemon import Daemon, Nodes, free_port, program  # noqa: E402

pytestmark = pytest.mark.skipif(program() is None, reason="no hintd: cargo build, or HINTD_PROGRAMS=DIRECTORY")

APPLICATION = "application_1700000000000_0001"
ATTEMPT = Attempt(APPLICATION)
MAPS = [Group("map", 3, memory_mb=1024)]


@contextmanager
def meanwhile(seconds: float, act: Callable[[], object]) -> Iterator[None]:
    """Acts in a thread, so many seconds from now; the block ends after it, with what it raised."""

    def later() -> None:
        time.sleep(seconds)
        act()

    with ThreadPoolExecutor(1) as threads:
        acting = threads.submit(later)
        yield
        acting.result()


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    made = Daemon()
    made.start()
    yield made
    made.close()


@pytest.fixture
def nodes(daemon: Daemon) -> Iterator[Nodes]:
    made = Nodes(daemon, 4)
    yield made
    made.close()


@pytest.fixture
def client(daemon: Daemon) -> Iterator[Client]:
    with Client(daemon.address) as made:
        yield made


def test_hints_name_nodes_and_hold_a_lease_for_each_container(client: Client, nodes: Nodes) -> None:
    groups = [*MAPS, Group("reduce", 1, memory_mb=2048, role="reduce")]
    answer = client.request_hints(Request(APPLICATION, groups, edges=[Edge("map", "reduce", 1 << 20)]), patience=10)
    assert sum(hint.count for hint in answer.hints if hint.group == "map") == 3
    assert sum(hint.count for hint in answer.hints if hint.group == "reduce") == 1
    assert {hint.host for hint in answer.hints} <= set(nodes.hosts)
    assert len(set(answer.leases)) == 4
    assert answer.policy == "spread" and answer.token and not answer.why_none


def test_the_same_request_again_gives_the_same_answer_and_takes_nothing_twice(client: Client, nodes: Nodes) -> None:
    request = Request(APPLICATION, MAPS)
    first = client.request_hints(request, patience=10)
    again = client.request_hints(request, patience=5)
    assert (again.decision_id, again.leases) == (first.decision_id, first.leases)
    assert client.release(ATTEMPT, first.token) == 3


def test_the_same_id_with_other_content_is_refused_by_name(client: Client, nodes: Nodes) -> None:
    request = Request(APPLICATION, MAPS)
    client.request_hints(request, patience=10)
    with pytest.raises(Refused) as caught:
        client.request_hints(replace(request, groups=[Group("map", 1, memory_mb=1024)]), patience=10)
    assert (caught.value.code, caught.value.reason) == (grpc.StatusCode.ALREADY_EXISTS, "id_reused")


def test_a_wrong_request_names_its_field_and_falls_back(client: Client, nodes: Nodes) -> None:
    request = Request(APPLICATION, [Group("map", 0, memory_mb=1024)])
    with pytest.raises(Refused) as caught:
        client.request_hints(request, patience=10)
    assert caught.value.reason == "invalid" and caught.value.field is not None
    answer = client.hints_or_none(request, patience=10)
    assert not answer.hints and "INVALID_ARGUMENT" in answer.why_none


def test_without_a_daemon_the_asks_go_on_as_they_came_and_in_time() -> None:
    ask = yarn.ResourceRequestProto(resource_name="*", num_containers=3)
    request = Request(APPLICATION, MAPS, asks=[ask])
    with Client(f"127.0.0.1:{free_port()}") as client:
        began = time.monotonic()
        answer = client.hints_or_none(request, patience=0.4)
        assert time.monotonic() - began < 10, "a busy machine is late, and nobody waits for ever"
        assert not answer.hints and answer.asks == (ask,) and answer.why_none
        with pytest.raises(OutOfTime):
            client.request_hints(request, patience=0.1)


def test_a_daemon_that_starts_late_is_found_within_the_patience() -> None:
    daemon = Daemon()
    try:
        with Client(daemon.address) as client:
            with pytest.raises(OutOfTime):
                client.request_hints(Request(APPLICATION, MAPS), patience=0.1)
            # It is there and says why it can't: that is an answer, where nobody there would be OutOfTime.
            with meanwhile(0.5, daemon.start), pytest.raises(Refused) as caught:
                client.request_hints(Request(APPLICATION, MAPS), patience=20)
            assert caught.value.code == grpc.StatusCode.FAILED_PRECONDITION
    finally:
        daemon.close()


def test_leases_are_released_once_and_with_the_right_token_only(client: Client, nodes: Nodes) -> None:
    answer = client.request_hints(Request(APPLICATION, MAPS), patience=10)
    with pytest.raises(Refused) as caught:
        client.release(ATTEMPT, "not-the-token")
    assert caught.value.reason == "bad_token"
    assert client.release(ATTEMPT, answer.token, answer.leases[:1]) == 1
    assert client.release(ATTEMPT, answer.token) == 2
    assert client.release(ATTEMPT, answer.token) == 0


def test_a_stranger_gets_nothing_of_an_application_that_it_knows(
    daemon: Daemon, client: Client, nodes: Nodes
) -> None:
    request = Request(APPLICATION, MAPS)
    answer = client.request_hints(request, patience=10)
    with Client(daemon.address) as stranger:
        for asked in [request, Request(APPLICATION, MAPS)]:
            with pytest.raises(Refused) as caught:
                stranger.request_hints(asked, patience=10)
            assert (caught.value.code, caught.value.reason) == (grpc.StatusCode.PERMISSION_DENIED, "bad_token")
        with pytest.raises(Refused):
            stranger.release(ATTEMPT)
        assert stranger.release(ATTEMPT, answer.token, answer.leases[:1]) == 1
    assert client.release(ATTEMPT) == 2
    assert answer.token not in repr(answer)


def test_the_same_secret_is_the_same_client(daemon: Daemon, nodes: Nodes) -> None:
    secret = b"0123456789abcdef"
    # As the other languages' tests have it.
    assert Secret(secret).nonce("application_1_0001").hex() == "eabbc6f648f32bfa66e81a1ae9334893"
    request = Request(APPLICATION, MAPS)
    with Client(daemon.address, secret) as first:
        answer = first.request_hints(request, patience=10)
    with Client(daemon.address, secret) as later:
        assert later.request_hints(request, patience=10).leases == answer.leases
        assert later.release(ATTEMPT) == 3
    assert "0123" not in repr(Secret(secret))
    with pytest.raises(ValueError, match="16 bytes or more"):
        Secret(b"short")


def test_who_follows_hears_of_a_node_that_left(client: Client, nodes: Nodes) -> None:
    answer = client.request_hints(Request(APPLICATION, MAPS), patience=10)
    lost = answer.hints[0].host
    with client.follow(ATTEMPT, answer.token) as following, meanwhile(0.2, lambda: nodes.gone(lost)):
        message = next(iter(following))
        assert message.cause == "node_gone", message
        assert following.last == message.number


def test_following_goes_on_after_the_daemon_was_killed(daemon: Daemon, client: Client) -> None:
    nodes = Nodes(daemon, 4)
    answer = client.request_hints(Request(APPLICATION, MAPS), patience=10)
    lost = answer.hints[0].host

    def trouble() -> None:
        daemon.kill()
        nodes.close()
        daemon.start()
        back = Nodes(daemon, 4)
        back.gone(lost)
        back.close()

    with client.follow(ATTEMPT, answer.token) as following, meanwhile(0.5, trouble):
        advice = iter(following)
        seen = [next(advice)]
        while not any(message.cause == "node_gone" for message in seen):
            seen.append(next(advice))
        numbers = [message.number for message in seen]
        assert numbers == sorted(set(numbers)), "numbers grow over a restart"


def test_what_is_told_reaches_the_daemon(client: Client, nodes: Nodes) -> None:
    answer = client.request_hints(Request(APPLICATION, MAPS), patience=10)
    done = common_pb2.TaskEvent(application_id=APPLICATION, attempt=1, done=common_pb2.ApplicationDone())
    with client.follow(ATTEMPT, answer.token) as following:
        following.tell([done])
        listener = threading.Thread(target=lambda: list(following))
        listener.start()
        time.sleep(1)
    listener.join(timeout=30)
    assert not listener.is_alive(), "closing ends the iteration"
    # An application that is done holds nothing: a release finds nothing, or not even the attempt.
    try:
        assert client.release(ATTEMPT, answer.token) == 0
    except Refused as error:
        assert error.code in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.PERMISSION_DENIED), error


def test_a_stranger_can_not_follow(client: Client, nodes: Nodes) -> None:
    client.request_hints(Request(APPLICATION, MAPS), patience=10)
    with pytest.raises(Refused) as caught:
        next(iter(client.follow(ATTEMPT, "not-the-token")))
    assert caught.value.code == grpc.StatusCode.PERMISSION_DENIED


def test_the_example_runs_with_a_daemon_and_without(daemon: Daemon, nodes: Nodes) -> None:
    example = Path(__file__).parents[1] / "examples" / "ask.py"
    for address, words in [(daemon.address, "containers on"), (f"127.0.0.1:{free_port()}", "as without hintd")]:
        ran = subprocess.run(
            [sys.executable, example, "--address", address],
            capture_output=True,
            text=True,
            timeout=60,
            env={"PYTHONPATH": str(Path(__file__).parents[1] / "src"), "PATH": ""},
        )
        assert ran.returncode == 0, ran.stderr
        assert words in ran.stdout, ran.stdout


def test_homes_of_input_are_told_to_their_asker_and_why_there_are_none(
    daemon: Daemon, client: Client, nodes: Nodes
) -> None:
    asked = placement_pb2.InputHomesRequest(application_id=APPLICATION, attempt=1, group="map")
    assert client.input_homes(asked, patience=10).reason == "no_key"
    asked.recurring_job_key = "nightly"
    found = client.input_homes(asked, patience=10)
    assert (list(found.homes), found.reason, found.patience_ms) == ([], "none_given", 0)
    assert not asked.nonce, "what the caller has is not changed"
    client.request_hints(Request(APPLICATION, MAPS), patience=10)
    assert client.input_homes(asked, patience=10).reason == "none_given"
    with Client(daemon.address) as stranger, pytest.raises(Refused) as caught:
        stranger.input_homes(asked, patience=10)
    assert caught.value.reason == "bad_token"
    with Client(f"127.0.0.1:{free_port()}") as nobody, pytest.raises(OutOfTime):
        nobody.input_homes(asked, patience=0.1)


def test_hints_that_are_kept_back_say_why() -> None:
    hints = common_pb2.HintSet(withheld=common_pb2.Withheld(reason="no_gain"))
    answer = Answer.of(placement_pb2.RequestHintsResponse(hints=hints))
    assert not answer.hints and answer.why_none == "withheld: no_gain"

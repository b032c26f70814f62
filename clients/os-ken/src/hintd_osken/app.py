"""The application: OpenFlow 1.3's messages become what is known of the network; probes and questions go out."""

from __future__ import annotations

import hashlib
import logging
import secrets
import threading
import time
from pathlib import Path
from typing import Any

import grpc
from hintd_client.client import OPTIONS as CHANNEL_OPTIONS
from hintd_client.secret import Secret
from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.ofproto import ofproto_v1_3
from os_ken.topology.switches import LLDPPacket

from . import options as options_of
from . import packets
from .counters import PortCount
from .feed import LoadFeed, TopologyFeed
from .install import Installer, View
from .model import LAST_PORT, PortAt, PortSeen
from .network import Network
from .openflow import Switchboard, flow_mod
from .options import BadOptions, Options
from .table import Command
from .watch import Watch

log = logging.getLogger("hintd_osken")

# Streams that only listen would not notice that hintd's machine is gone.
KEEPALIVE = [("grpc.keepalive_time_ms", 10_000), ("grpc.keepalive_timeout_ms", 5_000)]


class Hintd(app_manager.OSKenApp):
    """hintd's application. Handlers run on one thread and never wait for a switch."""

    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.options = options_of.load()
        self.board = Switchboard()
        self.installer = Installer(self.options, self.board)
        self.network = Network(self.options, self._publish)
        self._channel = grpc.insecure_channel(self.options.hintd, options=[*CHANNEL_OPTIONS, *KEEPALIVE])
        self._topology = TopologyFeed(self._channel, self.options.backoff)
        self._loads = LoadFeed(self._channel, self.options.backoff)
        self._watch = Watch(self._channel, self.options.watcher, nonce(self.options), self.installer, self.options.backoff)
        self.installer.watch_anew = self._watch.anew
        self._prober = Prober(self.options, self.board, self.network)
        self._watching = False
        self._ended = False

    def start(self) -> None:
        """Called by os-ken when all is loaded."""
        super().start()
        for thread in (self.installer, self.network, self._topology, self._loads, self._prober):
            thread.start()
        log.info("started: hintd at %s, switches at %s", self.options.hintd, self.options.listen)

    def close(self) -> None:
        """Ends what this application runs; entries stay in the switches."""
        self._ended = True
        for part in (self._watch, self._topology, self._loads, self._prober, self.network, self.installer):
            part.stop()
        self._channel.close()

    def _publish(self, view: View) -> None:
        self._topology.tell(view.graph)
        self.installer.show(view)
        if self.options.install and not self._watching and not self._ended:
            # Not earlier: rules that come before the network is known could only be refused.
            self._watching = True
            self._watch.start()

    # --- switches --------------------------------------------------------------------------------------------------

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def state_changed(self, event: Any) -> None:
        """A switch connected or went."""
        datapath = event.datapath
        if datapath.id is None:
            return
        if event.state == MAIN_DISPATCHER:
            log.info("switch %016x connected", datapath.id)
            self.board.join(datapath)
            # Before its neighbours' probes reach it, not with the first comparison.
            datapath.send_msg(flow_mod(datapath, Command(datapath.id, self.options.marks.probe())))
            ports = [seen(port) for port in datapath.ports.values() if port.port_no < LAST_PORT]
            self.network.note(lambda inventory, now: inventory.switch_up(datapath.id, ports, now))
            self.installer.joined(datapath.id)
            self._prober.soon()
        elif self.board.leave(datapath):
            log.warning("switch %016x has no connection any more", datapath.id)
            self.network.note(lambda inventory, now: inventory.switch_gone(datapath.id, now))
            self.network.forget_counters(datapath.id)

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def port_changed(self, event: Any) -> None:
        """A port came, changed or went."""
        message = event.msg
        if message.desc.port_no >= LAST_PORT or self.board.get(message.datapath.id) is not message.datapath:
            return
        at, port = PortAt(message.datapath.id, message.desc.port_no), seen(message.desc)
        if message.reason == message.datapath.ofproto.OFPPR_DELETE:
            self.network.note(lambda inventory, now: inventory.port_removed(at))
            return
        self.network.note(lambda inventory, now: inventory.port(at, port, now))
        if port.up:
            self._prober.soon()

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, event: Any) -> None:
        """A probe, or what a host sends to all."""
        message = event.msg
        at = PortAt(message.datapath.id, message.match["in_port"])
        packet = packets.read(message.data)
        if packet is None:
            return
        if packet.kind != packets.LLDP:
            mac, address = packet.mac, packet.address
            self.network.note(lambda inventory, now: inventory.packet(mac, address, at, now))
            return
        try:
            source = PortAt(*LLDPPacket.lldp_parse(message.data))
        except Exception:  # anybody may send LLDP, and os-ken's parser raises what it meets
            return
        self.network.note(lambda inventory, now: inventory.probe_heard(source, at))

    # --- answers ---------------------------------------------------------------------------------------------------

    @set_ev_cls(ofp_event.EventOFPBarrierReply, MAIN_DISPATCHER)
    def barrier(self, event: Any) -> None:
        """What was sent before is in force."""
        self.board.barrier(event.msg)

    @set_ev_cls(ofp_event.EventOFPErrorMsg, MAIN_DISPATCHER)
    def error(self, event: Any) -> None:
        """A switch refuses something."""
        message = event.msg
        if not self.board.error(message):
            log.warning("switch %016x refuses a message: error type %s, code %s", message.datapath.id, message.type,
                        message.code)

    @set_ev_cls(ofp_event.EventOFPFlowStatsReply, MAIN_DISPATCHER)
    def flow_stats(self, event: Any) -> None:
        """A part of a table."""
        self.board.flow_stats(event.msg)

    @set_ev_cls(ofp_event.EventOFPPortStatsReply, MAIN_DISPATCHER)
    def port_stats(self, event: Any) -> None:
        """Counters of a switch's ports."""
        message = event.msg
        counts = [
            PortCount(port.port_no, port.rx_bytes, port.tx_bytes, port.duration_sec + port.duration_nsec / 1e9)
            for port in message.body
            if port.port_no < LAST_PORT
        ]
        loads = self.network.counted(message.datapath.id, counts)
        if loads:
            self._loads.tell(loads)


class Prober(threading.Thread):
    """Sends probes of links and questions for counters, each in its time."""

    def __init__(self, options: Options, board: Switchboard, network: Network) -> None:
        super().__init__(name="probe", daemon=True)
        self._options, self._board, self._network = options, board, network
        self._wake = threading.Event()
        self._stopping = False
        # Probes as bytes: a port's never changes.
        self._frames: dict[tuple[PortAt, str], bytes] = {}

    def soon(self) -> None:
        """Something is new: probes go out at once."""
        self._wake.set()

    def stop(self) -> None:
        """Ends the thread."""
        self._stopping = True
        self._wake.set()

    def run(self) -> None:
        """Probes for ever."""
        counters = time.monotonic() + self._options.counters
        while not self._stopping:
            early = self._wake.wait(self._options.probe)
            if early:
                time.sleep(min(0.05, self._options.probe))  # the other end's port comes up a moment later
                self._wake.clear()
            for dpid in self._board.connected():
                try:
                    self._probe(dpid)
                    if time.monotonic() >= counters:
                        self._ask(dpid)
                except Exception:  # a switch that goes meanwhile must not end the probing of others
                    log.debug("switch %016x can't be probed", dpid, exc_info=True)
            if time.monotonic() >= counters:
                counters = time.monotonic() + self._options.counters

    def _probe(self, dpid: int) -> None:
        datapath = self._board.get(dpid)
        ports: Any = self._network.ask(lambda inventory: inventory.up_ports(dpid))
        if datapath is None or not ports:
            return
        parser, ofproto = datapath.ofproto_parser, datapath.ofproto
        out = bytearray()
        for at, port in ports:
            frame = self._frames.get((at, port.mac))
            if frame is None:
                frame = bytes(LLDPPacket.lldp_packet(at.dpid, at.port, port.mac, PROBE_TTL_S))
                self._frames[(at, port.mac)] = frame
            message = parser.OFPPacketOut(
                datapath=datapath, in_port=ofproto.OFPP_CONTROLLER, buffer_id=ofproto.OFP_NO_BUFFER,
                actions=[parser.OFPActionOutput(at.port)], data=frame,
            )
            message.set_xid(0)
            message.serialize()
            out += message.buf
        sent = [at for at, _ in ports]
        self._network.note(lambda inventory, _: inventory.probes_sent(sent))
        datapath.send(bytes(out))

    def _ask(self, dpid: int) -> None:
        datapath = self._board.get(dpid)
        if datapath is not None:
            datapath.send_msg(datapath.ofproto_parser.OFPPortStatsRequest(datapath, 0, datapath.ofproto.OFPP_ANY))


# Seconds that a neighbour may remember a probe; nobody but us reads it.
PROBE_TTL_S = 120


def seen(port: Any) -> PortSeen:
    """A port of os-ken's: up unless it is switched off or without carrier."""
    down = bool(port.state & ofproto_v1_3.OFPPS_LINK_DOWN) or bool(port.config & ofproto_v1_3.OFPPC_PORT_DOWN)
    return PortSeen(port.port_no, not down, port.curr_speed * 1000, port.hw_addr)


def nonce(options: Options) -> bytes:
    """What shows that a watcher of this name is us: by the secret file, else drawn for this life."""
    if not options.secret_file:
        return secrets.token_bytes(16)
    try:
        # Any file with 16 bytes or more: its digest is the secret.
        content = Path(options.secret_file).read_bytes().strip()
    except OSError as error:
        raise BadOptions(f"secret_file: {error}") from error
    if len(content) < 16:
        raise BadOptions(f"secret_file: {options.secret_file} has {len(content)} bytes; 16 are the least")
    return Secret(hashlib.sha256(content).digest()).nonce(options.watcher)

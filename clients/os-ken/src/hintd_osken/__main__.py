"""`python -m hintd_osken [--config FILE] [--check]`: os-ken with hintd's application, without os-ken's own manager, which
its releases from 4.0 on do not have."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading

from . import options as options_of


def main() -> int:
    """Runs until it is told to end."""
    parser = argparse.ArgumentParser(prog="hintd-osken", description="hintd's application for os-ken")
    parser.add_argument("--config", metavar="FILE", help=f"options; else the file that {options_of.VARIABLE} names")
    parser.add_argument("--check", action="store_true", help="only read the options")
    arguments = parser.parse_args()
    if arguments.config:
        os.environ[options_of.VARIABLE] = arguments.config
    try:
        options = options_of.load()
        options.names()
    except options_of.BadOptions as error:
        print(f"hintd-osken: {error}", file=sys.stderr)
        return 2
    if arguments.check:
        print("hintd-osken: the options are fine")
        return 0
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("hintd_osken").setLevel(options.log.upper())
    return serve(options)


def serve(options: options_of.Options) -> int:
    """Runs os-ken. Its threads can't be ended one by one, so the process ends with them."""
    # Real threads: gRPC does not go with eventlet's.
    os.environ["OSKEN_HUB_TYPE"] = "native"
    from os_ken import cfg
    from os_ken.base.app_manager import AppManager
    from os_ken.controller import controller

    from . import app

    # Importing these declares the options that are read and set below.
    _ = (controller, app)

    cfg.CONF(args=[], project="hintd_osken", default_config_files=[])
    host, port = options.listen_at()
    cfg.CONF.set_override("ofp_listen_host", host)
    cfg.CONF.set_override("ofp_tcp_listen_port", port)
    # A switch that does not answer is noticed, and so is a connection that nobody closed: os-ken's own threads only
    # notice a dead connection when they send.
    cfg.CONF.set_override("echo_request_interval", 1.0)
    cfg.CONF.set_override("maximum_unreplied_echo_requests", 5)

    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    manager = AppManager.get_instance()
    try:
        manager.load_apps(["hintd_osken.app"])
        contexts = manager.create_contexts()
        services = manager.instantiate_apps(**contexts)
    except Exception as error:
        print(f"hintd-osken: {error}", file=sys.stderr)
        logging.debug("start", exc_info=True)
        os._exit(1)
    while not ended.wait(1.0):
        if any(not service.is_alive() for service in services):
            logging.getLogger("hintd_osken").error("nobody listens for switches at %s any more; see above", options.listen)
            os._exit(1)
    found = manager.applications.get("Hintd")
    if found is not None:
        found.close()
    logging.shutdown()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())

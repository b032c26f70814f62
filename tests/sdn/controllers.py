"""Controllers: how each is installed, and with what it is started."""

import os
import re
import shutil
import sys

from fabric import CONTROLLER_PORT, run

REST_PORT = 8080
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CLIENTS = os.path.join(ROOT, "clients")


def ryu(folder):
    """Ryu 4.34 with the applications that hintd asks."""
    command = [
        install_controller(folder), "--observe-links",
        "--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", str(CONTROLLER_PORT),
        "--wsapi-host", "127.0.0.1", "--wsapi-port", str(REST_PORT),
        "ryu.app.rest_topology", "ryu.app.ofctl_rest", "ryu.app.ws_topology",
    ]
    return {"name": "ryu", "command": command}


def os_ken(folder, options):
    """os-ken with hintd's application, from this checkout; `options` is the path of its options."""
    python, done = os.path.join(folder, "bin", "python"), os.path.join(folder, ".done-4.2.2")
    if not os.path.exists(done):
        print(f"sdn: installing os-ken 4.2.2 into {folder}", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        run(sys.executable, "-m", "venv", folder)
        pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        run(*pip, "os-ken==4.2.2", "grpcio==1.85.1", "grpcio-tools==1.85.1")
        open(done, "w").close()
    run(python, os.path.join(CLIENTS, "python", "generate.py"))
    path = ":".join(os.path.join(CLIENTS, client, "src") for client in ("os-ken", "python"))
    return {"name": "os-ken", "command": [python, "-m", "hintd_osken", "--config", options],
            "env": {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}}


def install_controller(folder):
    """A virtual environment with Ryu 4.34, mended so that it runs on a current Python; returns `ryu-manager`."""
    manager = os.path.join(folder, "bin", "ryu-manager")
    done = os.path.join(folder, ".mended")
    if os.path.exists(done):
        return manager
    print(f"sdn: installing Ryu 4.34 into {folder}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "venv", folder)
    pip = [os.path.join(folder, "bin", "pip"), "install", "-q", "--disable-pip-version-check"]
    run(*pip, "setuptools==57.5.0", "wheel<0.40", "pbr")
    run(*pip, "--no-build-isolation", "ryu==4.34", "eventlet==0.36.1", "dnspython<3")
    found = run(os.path.join(folder, "bin", "python"), "-c", "import ryu; print(ryu.__path__[0])").strip()
    mend_wsgi(os.path.join(found, "app", "wsgi.py"))
    open(done, "w").close()
    return manager


def mend_wsgi(path):
    """Ryu 4.34 imports what eventlet no longer has, and sends Python's text of bytes over the websocket."""
    with open(path) as file:
        text = file.read()
    text, imports = re.subn(
        r"    from eventlet\.wsgi import ALREADY_HANDLED\n    _ALREADY_HANDLED = ALREADY_HANDLED\n", "", text
    )
    text, calls = re.subn(
        r"        return self\._ALREADY_HANDLED\n",
        "        import eventlet.wsgi\n        eventlet.wsgi.WSGI_LOCAL.already_handled = True\n        return b''\n",
        text,
    )
    text, sends = re.subn(
        r"self\.ws\.send\(six\.text_type\((\w+)\)\)",
        r"self.ws.send(\1.decode() if isinstance(\1, bytes) else six.text_type(\1))",
        text,
    )
    if (imports, calls, sends) != (1, 1, 2):
        raise RuntimeError(f"{path} is not Ryu 4.34's: {imports}, {calls}, {sends} places found")
    with open(path, "w") as file:
        file.write(text)

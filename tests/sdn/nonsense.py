"""A controller that answers wrongly: `nonsense.py PORT rubbish|half|never|huge|refusal`."""

import socket
import sys
import threading
import time

port, mode = int(sys.argv[1]), sys.argv[2]


def answer(connection):
    try:
        connection.recv(65536)
        if mode == "rubbish":
            body = b'[{"dpid": 7, "ports": "none"}, nonsense'
        elif mode == "refusal":
            connection.sendall(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 9\r\n\r\nTraceback")
            return
        elif mode == "half":
            connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n[{"dpid": "00000000000')
            return
        elif mode == "huge":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n[" + b" " * 4_000_000)
            return
        else:
            time.sleep(600)
            return
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    except OSError:
        pass
    finally:
        connection.close()


server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind(("127.0.0.1", port))
server.listen(64)
while True:
    threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()

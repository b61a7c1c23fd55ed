"""Listeners are found with their addresses, also those of children."""

import os
import socket
import subprocess
import sys

from streamcore.testing.services.listening import family, listeners

CHILD = """
import socket
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
input()
"""


def test_own_listeners_are_found_with_the_address_they_are_bound_to():
    with socket.create_server(("127.0.0.1", 0)) as here, socket.create_server(("", 0)) as open_one:
        found = listeners([os.getpid()])
        assert f"127.0.0.1:{here.getsockname()[1]}" in found
        assert f"0.0.0.0:{open_one.getsockname()[1]}" in found


def test_listeners_of_children_are_found_through_the_family():
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=pipe, stdout=pipe, stderr=pipe
    ) as child:
        port = int(child.stdout.readline())
        assert child.pid in family(os.getpid())
        assert listeners([child.pid]) == [f"127.0.0.1:{port}"]
        child.stdin.close()

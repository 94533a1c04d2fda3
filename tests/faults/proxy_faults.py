"""What a proxy may do before there is a tunnel: no byte of a write can have reached the service."""

from faults.misbehaving_service import Connection
from faults.service_faults import (
    HTML,
    NEVER_SENT,
    Row,
    complete,
    drip,
    giant,
    hang_up,
    reset_unread,
    sends,
    stay_silent,
)


def tunnel_to_nowhere(connection: Connection) -> None:
    connection.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
    connection.socket.recv(65536)


def tunnel_to_plain_http(connection: Connection) -> None:
    tunnel_to_nowhere(connection)
    connection.send(complete(connection.right))


def reset_tunnel(connection: Connection) -> None:
    connection.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
    reset_unread(connection)


AT_THE_PROXY: tuple[Row, ...] = (
    Row("reset", Connection.reset, NEVER_SENT, tries=3),
    Row("hang up", hang_up, NEVER_SENT, tries=3),
    Row("silence", stay_silent, NEVER_SENT),
    Row("not HTTP", sends(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), NEVER_SENT),
    Row("half a status line", sends(b"HTTP/1.1 2"), NEVER_SENT, tries=3),
    Row("drip in the head", drip(b"HTTP/1.1 200 OK\r\nX-A: ", b"x"), NEVER_SENT),
    Row("a header of 4 MB", giant(b"HTTP/1.1 200 OK\r\nX-A: ", b"x" * 4096), NEVER_SENT),
    Row("302", sends(b"HTTP/1.1 302 Found\r\nLocation: https://elsewhere.test/\r\nContent-Length: 0\r\n\r\n"),
        NEVER_SENT, tries=3),
    Row("403", sends(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"), NEVER_SENT, tries=3),
    Row("407", sends(b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n"),
        NEVER_SENT, tries=3),
    Row("429", sends(b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\n\r\n"), NEVER_SENT, tries=3),
    Row("502 in HTML", sends(b"HTTP/1.1 502 Bad Gateway\r\n\r\n" + HTML), NEVER_SENT, tries=3),
    Row("a tunnel to nowhere", tunnel_to_nowhere, NEVER_SENT),
    Row("a tunnel to plain HTTP", tunnel_to_plain_http, NEVER_SENT),
)  # fmt: skip

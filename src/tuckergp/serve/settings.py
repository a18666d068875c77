"""The settings of a server: what is served, who may ask, and how much at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tuckergp.checks import Checked, instance, list_of, number, one_of, positive, setting, text, whole
from tuckergp.errors import InputError

__all__ = ["ServeSettings"]

SHORTEST_TOKEN = 16


@dataclass(frozen=True)
class ServeSettings(Checked):
    """What `create_app` and ``tuckergp serve`` take.

    Attributes
    ----------
    path : Path
        The model file. It is never written to.
    journal : Path or None
        The file that keeps fold-ins and forgotten users, which a restart replays; None for a temporary one.
    token : str or None
        What requests must send as ``Authorization: Bearer TOKEN``; None lets everyone in who reaches the port.
    hosts : tuple of str
        Names, beside localhost and addresses, under which the server may be asked where there is no token.
    proxies : tuple of str
        Addresses of proxies in front of the server, whose X-Forwarded-For says who asks; others are not believed.
    rate : float
        Requests per second and client that a worker answers, on average; 0 for no limit. Behind a proxy that is not
        named, all are one client.
    most_bytes : int
        The longest body of a request.
    most_journal : int
        The longest journal in bytes; once it is longer, nothing more is folded in.
    threads : int
        Answers that a worker computes at the same time; others wait for their turn.
    at_once : int
        Requests that a worker has at the same time, those that wait included; more are told to come back.
    connections : int
        Connections that a worker has open with one client, named proxies apart; more are refused.
    patience : float
        Seconds that a client may take to send the head of a request, its body, and to take what is sent.
    answer_within : float
        Seconds after which an answer that is not computed is given up, the wait for a thread included; 0 for no limit.
    watch : float
        Seconds between two looks at whether the model file has changed; 0 looks only on SIGHUP.
    workers, worker : int
        The number of processes, and which of them this is, from 0 on.
    folder : Path or None
        Where workers keep what they share, apart from a journal that is named; None for one worker.
    """

    path: Path
    journal: Path | None = setting(None, instance("a path", Path) | one_of(None))
    token: str | None = setting(None, text("text") | one_of(None))
    hosts: tuple[str, ...] = setting((), list_of("a list of names", text("text")))
    proxies: tuple[str, ...] = setting((), list_of("a list of addresses", text("text")))
    rate: float = setting(1000.0, number("a number from 0 on", lambda value: value >= 0))
    most_bytes: int = setting(2_000_000, whole(1))
    most_journal: int = setting(100_000_000, whole(1))
    threads: int = setting(4, whole(1))
    at_once: int = setting(256, whole(1))
    connections: int = setting(256, whole(1))
    patience: float = setting(30.0, positive())
    answer_within: float = setting(30.0, number("a number from 0 on", lambda value: value >= 0))
    watch: float = setting(1.0, number("a number from 0 on", lambda value: value >= 0))
    workers: int = setting(1, whole(1))
    worker: int = setting(0, whole(0))
    folder: Path | None = setting(None, instance("a path", Path) | one_of(None))

    def __post_init__(self) -> None:
        super().__post_init__()
        token = self.token  # which is in no message
        if token is not None and not (len(token) >= SHORTEST_TOKEN and token.isascii() and token.isprintable()
                                      and " " not in token):  # fmt: skip
            raise InputError(
                f"The token must be {SHORTEST_TOKEN} or more letters, digits and signs without spaces, such as the "
                f"output of openssl rand -hex 32."
            )

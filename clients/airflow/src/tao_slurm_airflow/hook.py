"""The hook: clients of the service that a connection names."""

from __future__ import annotations

import math
import ssl
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
from airflow.sdk import BaseHook
from tao_slurm import AsyncClient, Client, SettingsError, TaoSlurmError

if TYPE_CHECKING:
    from airflow.sdk import Connection

__all__ = ["FOREVER", "TaoSlurmHook"]

FOREVER = math.inf
"""The patience of a wait: requests are repeated until the service answers."""


class TaoSlurmHook(BaseHook):
    """Clients of the service whose address is the connection's host, and whose token is its password.

    Neither the environment nor a profile adds a token: it would go to any address that a connection has.
    """

    conn_name_attr = "tao_slurm_conn_id"
    default_conn_name = "tao_slurm_default"
    conn_type = "tao_slurm"
    hook_name = "tao-slurm"

    def __init__(self, tao_slurm_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.tao_slurm_conn_id = tao_slurm_conn_id

    @cached_property
    def settings(self) -> Settings:
        """Address and token, read once: a handler of signals may use them."""
        return Settings(self.get_connection(self.tao_slurm_conn_id))

    def get_conn(self, *, patience: float = 300.0, timeout: float = 30.0) -> Client:
        """A new client, to be closed by the caller."""
        return self.settings.client(patience=patience, timeout=timeout)

    async def aget_conn(self, *, patience: float = 300.0) -> AsyncClient:
        """A new asynchronous client. It reads the connection again, because its token may be another one by now."""
        settings = Settings(await self.aget_connection(self.tao_slurm_conn_id))
        return AsyncClient(settings.url, settings.token, patience=patience, verify=certificates())

    def test_connection(self) -> tuple[bool, str]:
        """Whether the service accepts the token, for Airflow's button of that name."""
        try:
            with self.get_conn(patience=0.0, timeout=10.0) as client:
                caller = client.me()
        except TaoSlurmError as error:
            return False, str(error)
        return True, f"{self.settings.url}: the token of {caller.owner} allows {', '.join(caller.scopes) or 'nothing'}"


@cache
def certificates() -> ssl.SSLContext:
    """One for all triggers of a process: to read the certificates takes longer than a request."""
    return httpx.create_ssl_context()


class Settings:
    """Address and token of a connection. The token is in no `repr`."""

    def __init__(self, connection: Connection) -> None:
        if not connection.password:
            raise SettingsError(f"the connection {connection.conn_id!r} has no password: it is the token of the service")
        self.url: str = address(connection)
        self.token: str = connection.password

    def client(self, **options: Any) -> Client:
        return Client(self.url, self.token, **options)

    def __repr__(self) -> str:
        return f"Settings(url={self.url!r}, token='…')"


def address(connection: Connection) -> str:
    """The address that the fields of a connection make: the host may be a whole one, and in a URI it is only a name."""
    host = (connection.host or "").strip()
    if not host:
        raise SettingsError(
            f"the connection {connection.conn_id!r} has no host: it is the address of the service, such as https://slurm.example.org"
        )
    if "://" not in host:
        name = f"[{host}]" if host.count(":") > 1 and not host.startswith("[") else host
        host = f"{connection.schema or 'https'}://{name}"
    try:
        parts = urlsplit(host)
        if connection.port and parts.port is None:
            return parts._replace(netloc=f"{parts.netloc}:{connection.port}").geturl()
    except ValueError:
        raise SettingsError(f"the host of the connection {connection.conn_id!r} is not an address") from None
    return host

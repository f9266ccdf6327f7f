"""Whether callers have to say who they are: always, except on the loopback interface or where somebody says so."""

from __future__ import annotations

import ipaddress
import socket

from service.settings import Settings, SettingsError


class AccessError(SettingsError):
    """The service would be open to everybody on an address that others reach."""

    def __init__(self, detail: str, remedy: str) -> None:
        super().__init__(f"{detail} {remedy}")
        self.detail = detail
        self.remedy = remedy


def is_loopback_address(text: str) -> bool:
    """Whether it is a loopback address, written out."""
    try:
        return ipaddress.ip_address(text).is_loopback
    except ValueError:
        return False


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the host; a name must mean loopback addresses alone."""
    if is_loopback_address(host.strip("[]")):
        return True
    try:
        found = {entry[4][0] for entry in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        return False
    return bool(found) and all(ipaddress.ip_address(str(address).partition("%")[0]).is_loopback for address in found)


def must_identify(settings: Settings, host: str, *, has_keys: bool) -> bool:
    """Whether callers have to say who they are at this host.

    Raises:
        AccessError: they would have to, and nobody could.
    """
    if settings.access == "off":
        return False
    if settings.access == "required":
        return True
    if is_loopback(host):
        return False
    if has_keys or settings.oidc_issuer:
        return True
    raise AccessError(
        f"{host} is reachable from other machines, and there is no API key yet: nobody could be let in.",
        "Create one (graphgate keys create --name NAME --scope validate). Or set GRAPHGATE_ACCESS=required and create "
        "keys later, or set GRAPHGATE_OIDC_ISSUER, or set GRAPHGATE_ACCESS=off to let everybody in who reaches it.",
    )

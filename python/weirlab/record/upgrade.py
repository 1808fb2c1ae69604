"""Manifests of earlier formats in the words of the present one."""

from __future__ import annotations

from typing import Any


def upgraded(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest of any format with the keys of the present one. Its `schema_version` stays."""
    version = manifest.get("schema_version")
    return _to_3(manifest) if isinstance(version, int) and version < 3 else manifest


def _to_3(manifest: dict[str, Any]) -> dict[str, Any]:
    """Format 3 calls `set_up` `configuration`, and `station` of flows and tunnels `client_host`."""
    found = _renamed(manifest, "set_up", "configuration")
    for part in ("test", "scenario"):
        if isinstance(found.get(part), dict):
            found[part] = {key: _with_client_hosts(key, value) for key, value in found[part].items()}
    return found


def _with_client_hosts(key: str, value: Any) -> Any:
    if key not in ("flows", "tunnels") or not isinstance(value, list):
        return value
    return [_renamed(one, "station", "client_host") if isinstance(one, dict) else one for one in value]


def _renamed(table: dict[str, Any], former: str, present: str) -> dict[str, Any]:
    return {present if key == former else key: value for key, value in table.items()}

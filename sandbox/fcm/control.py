"""The HTTP interface that creates service accounts and devices, and reads their messages.

| request | response |
|---|---|
| `POST /projects/{project}/service-accounts` | 201, the key file that Google's console downloads |
| `DELETE /service-accounts/{email}` | 204; the account and its access tokens are rejected |
| `PUT /projects/{project}` `{"quota_per_minute"?, "token_lifetime"?}` | 204 |
| `PUT /projects/{project}/tokens/behaviour` `{"mode", "times"?, options}` | 204 |
| `PUT /projects/{project}/messaging/behaviour` `{"mode", "times"?, options}` | 204 |
| `DELETE /projects/{project}/access-tokens` | 204; those given so far are rejected as expired |
| `POST /projects/{project}/devices` `{"count"?, "by_fid"?}` | 201, the device, or `{"devices"}` |
| `PUT /devices/{id}/fid` | 200, the device, which is reached by its FID from then on |
| `PUT /devices/{id}/behaviour` `{"mode", "times"?, options}` | 204 |
| `GET /devices/{id}/messages` | `{"messages": […]}`, oldest first |
| `DELETE /devices/{id}` | 204; from then on its token or FID is UNREGISTERED |
| `GET /messages`, also `?id=…&id=…` | totals of each device and of all |
| `POST /reset` | 204; every device and message is forgotten, accounts are not |

An error of the caller is 400 or 404 with `{"error": …}`.
"""

from typing import Any

from aiohttp import web
from typing_extensions import override

from sandbox.control import (
    DeviceControl,
    bad_request,
    behave,
    not_found,
    read_object,
    reject_unknown,
)
from sandbox.fcm.devices import FcmDevice, FcmReceipt, Project, Registry

_LIMITS = frozenset({"quota_per_minute", "token_lifetime"})


class FcmControlApi(DeviceControl[FcmDevice]):
    added_at = "/projects/{project}/devices"
    device_fields = frozenset({"by_fid"})

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry)
        self._registry = registry

    @override
    def routes(self) -> list[web.RouteDef]:
        project = "/projects/{project}"
        return [
            web.post(f"{project}/service-accounts", self.add_account),
            web.delete("/service-accounts/{email}", self.revoke),
            web.put(project, self.limit),
            web.put(f"{project}/tokens/behaviour", behave(lambda r: self._project(r).tokens)),
            web.put(f"{project}/messaging/behaviour", behave(lambda r: self._project(r).messaging)),
            web.delete(f"{project}/access-tokens", self.expire),
            web.put("/devices/{id}/fid", self.register_by_fid),
            *super().routes(),
        ]

    async def add_account(self, request: web.Request) -> web.Response:
        account = self._registry.new_account(request.match_info["project"])
        return web.json_response(dict(account.key_file), status=201)

    async def revoke(self, request: web.Request) -> web.Response:
        email = request.match_info["email"]
        if email not in self._registry.accounts:
            raise not_found("no such service account")
        self._registry.revoke(email)
        return web.Response(status=204)

    async def limit(self, request: web.Request) -> web.Response:
        fields = await read_object(request)
        reject_unknown(fields, _LIMITS)
        project = self._project(request)
        for name, value in fields.items():
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise bad_request(f"{name} must be a whole number, 0 or more")
        project.quota_per_minute = fields.get("quota_per_minute", project.quota_per_minute)
        project.tokens.lifetime = fields.get("token_lifetime", project.tokens.lifetime)
        return web.Response(status=204)

    async def expire(self, request: web.Request) -> web.Response:
        self._registry.expire_tokens(request.match_info["project"])
        return web.Response(status=204)

    async def register_by_fid(self, request: web.Request) -> web.Response:
        device = self.device_of(request)
        self._registry.register_by_fid(device)
        return web.json_response(_device_json(device))

    def _project(self, request: web.Request) -> Project:
        return self._registry.project(request.match_info["project"])

    @override
    def new_devices(
        self, request: web.Request, fields: dict[str, Any], count: int
    ) -> list[dict[str, Any]]:
        by_fid = fields.get("by_fid", False)
        if not isinstance(by_fid, bool):
            raise bad_request("by_fid must be true or false")
        project = request.match_info["project"]
        return [_device_json(self._registry.add(project, by_fid=by_fid)) for _ in range(count)]

    @override
    def delete(self, device: FcmDevice) -> None:
        self._registry.unregister(device)

    @override
    def reset(self) -> None:
        self._registry.clear()

    @override
    def content_of(self, receipt: FcmReceipt) -> dict[str, object]:
        return {"message": receipt.message}


def _device_json(device: FcmDevice) -> dict[str, str]:
    kind = "fid" if device.by_fid else "token"
    return {"id": device.id, "project": device.project, kind: device.address}

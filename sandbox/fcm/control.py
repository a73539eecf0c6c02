"""The HTTP interface that creates service accounts and devices, and reads their messages.

| request | answer |
|---|---|
| `POST /projects/{project}/service-accounts` | 201, the key file that Google's console downloads |
| `DELETE /service-accounts/{email}` | 204; the account and its access tokens are refused |
| `PUT /projects/{project}` `{"quota_per_minute"?, "token_lifetime"?}` | 204 |
| `PUT /projects/{project}/tokens/behaviour` `{"mode", "times"?, options}` | 204 |
| `PUT /projects/{project}/messaging/behaviour` `{"mode", "times"?, options}` | 204 |
| `DELETE /projects/{project}/access-tokens` | 204; those given so far are refused as expired |
| `POST /projects/{project}/devices` `{"count"?, "by_fid"?}` | 201, the device, or `{"devices"}` |
| `PUT /devices/{id}/fid` | 200, the device, which is reached by its FID from then on |
| `PUT /devices/{id}/behaviour` `{"mode", "times"?, options}` | 204 |
| `GET /devices/{id}/messages` | `{"messages": […]}`, oldest first |
| `DELETE /devices/{id}` | 204; from then on its token or FID is UNREGISTERED |
| `GET /messages`, also `?id=…&id=…` | totals of each device and of all |
| `POST /reset` | 204; every device and message is forgotten, accounts are not |

An error of the caller is 400 or 404 with `{"error": …}`.
"""

from aiohttp import web
from typing_extensions import override

from sandbox.control import DeviceControl
from sandbox.control_json import (
    bad_request,
    checked_count,
    not_found,
    read_object,
    receipt_json,
    refuse_unknown,
    set_behaviour,
)
from sandbox.fcm.devices import FcmDevice, FcmReceipt, Project, Registry

_LIMITS = frozenset({"quota_per_minute", "token_lifetime"})


class FcmControlApi(DeviceControl[FcmDevice]):
    def __init__(self, registry: Registry) -> None:
        super().__init__(registry)
        self._registry = registry

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/projects/{project}/service-accounts", self.add_account),
            web.delete("/service-accounts/{email}", self.revoke),
            web.put("/projects/{project}", self.limit),
            web.put("/projects/{project}/tokens/behaviour", self.behave_tokens),
            web.put("/projects/{project}/messaging/behaviour", self.behave_messaging),
            web.delete("/projects/{project}/access-tokens", self.expire),
            web.post("/projects/{project}/devices", self.register),
            web.put("/devices/{id}/fid", self.register_by_fid),
            web.delete("/devices/{id}", self.unregister),
            *self.device_routes("/devices", "/messages"),
            web.post("/reset", self.reset),
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
        refuse_unknown(fields, _LIMITS)
        project = self._project(request)
        for name, value in fields.items():
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise bad_request(f"{name} must be a whole number, 0 or more")
        project.quota_per_minute = fields.get("quota_per_minute", project.quota_per_minute)
        project.tokens.lifetime = fields.get("token_lifetime", project.tokens.lifetime)
        return web.Response(status=204)

    async def behave_tokens(self, request: web.Request) -> web.Response:
        set_behaviour(self._project(request).tokens, await read_object(request))
        return web.Response(status=204)

    async def behave_messaging(self, request: web.Request) -> web.Response:
        set_behaviour(self._project(request).messaging, await read_object(request))
        return web.Response(status=204)

    async def expire(self, request: web.Request) -> web.Response:
        self._registry.expire_tokens(request.match_info["project"])
        return web.Response(status=204)

    async def register(self, request: web.Request) -> web.Response:
        fields = await read_object(request)
        refuse_unknown(fields, frozenset({"count", "by_fid"}))
        by_fid = fields.get("by_fid", False)
        if not isinstance(by_fid, bool):
            raise bad_request("by_fid must be true or false")
        project = request.match_info["project"]
        if "count" not in fields:
            device = self._registry.add(project, by_fid=by_fid)
            return web.json_response(_device_json(device), status=201)
        count = checked_count(fields["count"])
        devices = [_device_json(self._registry.add(project, by_fid=by_fid)) for _ in range(count)]
        return web.json_response({"devices": devices}, status=201)

    async def register_by_fid(self, request: web.Request) -> web.Response:
        device = self.device_of(request)
        self._registry.register_by_fid(device)
        return web.json_response(_device_json(device))

    async def unregister(self, request: web.Request) -> web.Response:
        self._registry.unregister(self.device_of(request))
        return web.Response(status=204)

    async def reset(self, _request: web.Request) -> web.Response:
        self._registry.clear()
        return web.Response(status=204)

    def _project(self, request: web.Request) -> Project:
        return self._registry.project(request.match_info["project"])

    @override
    def receipt_json(self, receipt: FcmReceipt) -> dict[str, object]:
        return receipt_json(receipt) | {"message": receipt.message}


def _device_json(device: FcmDevice) -> dict[str, str]:
    kind = "fid" if device.by_fid else "token"
    return {"id": device.id, "project": device.project, kind: device.address}

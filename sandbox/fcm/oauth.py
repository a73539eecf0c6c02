"""Google's token endpoint: `POST /token` (RFC 7523; RFC 6749 section 5)."""

import time

from aiohttp import web

from sandbox.fcm import responses
from sandbox.fcm.accounts import ServiceAccount
from sandbox.fcm.assertion import GOOGLE_AUDIENCE, GRANT_TYPE, Assertion, checked_scopes
from sandbox.fcm.behaviours import token_response
from sandbox.fcm.devices import Registry
from sandbox.receipts import Receipt
from sandbox.responses import RejectedError, Response, http_response, write_response
from sandbox.wire import act


class TokenResource:
    """Checks the assertion first. The behaviour of the project's token endpoint applies only to
    requests of known accounts."""

    def __init__(self, registry: Registry, token_uri: str) -> None:
        self._registry = registry
        self._audiences = (GOOGLE_AUDIENCE, token_uri)

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/token", self.post)]

    async def post(self, request: web.Request) -> web.StreamResponse:
        try:
            assertion = await _assertion(request)
            account = self._account(assertion)
        except RejectedError as error:
            return http_response(error.response)
        receipt = Receipt(time.time(), {})
        self._registry.project(account.project).tokens.receipts.append(receipt)
        try:
            response = await self._respond(request, assertion, account, receipt)
        except RejectedError as error:
            response = error.response
        return await write_response(request, receipt, response)

    def _account(self, assertion: Assertion) -> ServiceAccount:
        account = self._registry.accounts.get(assertion.issuer)
        if account is None:
            raise RejectedError(responses.invalid_grant("Invalid grant: account not found"))
        return account

    async def _respond(
        self,
        request: web.Request,
        assertion: Assertion,
        account: ServiceAccount,
        receipt: Receipt,
    ) -> Response:
        now = time.time()
        scopes = checked_scopes(assertion, account, audiences=self._audiences, now=now)
        endpoint = self._registry.project(account.project).tokens
        behaviour = endpoint.next_behaviour()
        await act(request, behaviour, receipt)
        return token_response(behaviour, now=now) or self._issue(account, scopes, endpoint.lifetime)

    def _issue(self, account: ServiceAccount, scopes: frozenset[str], lifetime: int) -> Response:
        token = self._registry.tokens.issue(account, scopes, lifetime=lifetime, now=time.time())
        return responses.ok(
            {"access_token": token.value, "expires_in": lifetime, "token_type": "Bearer"},
            taken=True,
        )


async def _assertion(request: web.Request) -> Assertion:
    form = await request.post()
    grant_type = str(form.get("grant_type", ""))
    if grant_type != GRANT_TYPE:
        text = f"Invalid grant_type: {grant_type}"
        raise RejectedError(responses.oauth_error(400, "unsupported_grant_type", text))
    return Assertion.parse(str(form.get("assertion", "")))

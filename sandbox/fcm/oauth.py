"""Google's token endpoint: `POST /token` (RFC 7523; RFC 6749 section 5)."""

import time

from aiohttp import web

from sandbox.answering import Answer, RefusedError, response_of, write_answer
from sandbox.fcm import answers
from sandbox.fcm.accounts import ServiceAccount
from sandbox.fcm.assertion import GOOGLE_AUDIENCE, GRANT_TYPE, Assertion, checked_scopes
from sandbox.fcm.behaviours import token_answer
from sandbox.fcm.devices import Registry
from sandbox.receipts import Receipt
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
        except RefusedError as error:
            return response_of(error.answer)
        receipt = Receipt(time.time(), {})
        self._registry.project(account.project).tokens.receipts.append(receipt)
        try:
            answer = await self._answer(request, assertion, account, receipt)
        except RefusedError as error:
            answer = error.answer
        return await write_answer(request, receipt, answer)

    def _account(self, assertion: Assertion) -> ServiceAccount:
        account = self._registry.accounts.get(assertion.issuer)
        if account is None:
            raise RefusedError(answers.invalid_grant("Invalid grant: account not found"))
        return account

    async def _answer(
        self,
        request: web.Request,
        assertion: Assertion,
        account: ServiceAccount,
        receipt: Receipt,
    ) -> Answer:
        now = time.time()
        scopes = checked_scopes(assertion, account, audiences=self._audiences, now=now)
        endpoint = self._registry.project(account.project).tokens
        behaviour = endpoint.next_behaviour()
        await act(request, behaviour, receipt)
        return token_answer(behaviour, now=now) or self._issue(account, scopes, endpoint.lifetime)

    def _issue(self, account: ServiceAccount, scopes: frozenset[str], lifetime: int) -> Answer:
        token = self._registry.tokens.issue(account, scopes, lifetime=lifetime, now=time.time())
        return answers.ok(
            {"access_token": token.value, "expires_in": lifetime, "token_type": "Bearer"},
            taken=True,
        )


async def _assertion(request: web.Request) -> Assertion:
    form = await request.post()
    grant_type = str(form.get("grant_type", ""))
    if grant_type != GRANT_TYPE:
        text = f"Invalid grant_type: {grant_type}"
        raise RefusedError(answers.oauth_error(400, "unsupported_grant_type", text))
    return Assertion.parse(str(form.get("assertion", "")))

"""Views of what a channel owns, for programs with an API key: list, create, read, update, delete.

A module declares a `Resource`, and takes the methods of its views from it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from channels_app.http import KeyedView, own_channel, require_scope
from channels_app.models import Channel, Scope
from channels_app.selectors import ChannelNotFound
from pushsvc.common.errors import MissingScope, PushsvcError
from pushsvc.common.http.fields import StrictSerializer
from pushsvc.common.http.openapi import follow_ups, problem_responses
from pushsvc.common.http.paging import PAGE_DESCRIPTION, PAGE_PARAMETERS, read_page

Act = Callable[..., Any]
Method = Callable[..., Response]
Shown = dict[str, Any]
Output = type[serializers.Serializer[Any]]
Example = Mapping[str, Any]
Problem = int | PushsvcError


def _at_once(request: Request, channel: Channel, act: Callable[[], Shown]) -> Shown:
    return act()


@dataclass(frozen=True)
class Resource:
    """One kind of thing that a channel owns.

    `id_name`: the argument of the path that names one; `id_field`: the field of the output that has
    it. `given`, `shown`: examples of input and output. `follow_ups`: the ids of operations on one
    thing that can follow its creation. `parameters`: of the path that names one.
    `reader`: validates a body, if `input` is only for the API's document.

    An `act` that creates gets `channel`, any other gets `channel_id`; also the arguments of the
    path and the fields of the input. The errors of a method are those besides the usual ones.
    """

    name: str
    names: str
    _: KW_ONLY
    tag: str
    id_name: str
    id_field: str
    input: type[StrictSerializer]
    output: Output
    given: Example
    shown: Example
    follow_ups: Sequence[str]
    parameters: Sequence[OpenApiParameter] = ()
    scope: Scope = Scope.MANAGE
    reader: type[StrictSerializer] | None = None

    @property
    def permissions(self) -> tuple[type[BasePermission]]:
        return (require_scope(self.scope),)

    def list(self, act: Act, summary: str, description: str = "") -> Method:
        """Calls `act` with the `limit` and `offset` of a page. A list with a `description` has no
        pages."""

        def get(view: KeyedView, request: Request, channel_id: UUID) -> Response:
            of = {"channel_id": own_channel(request, channel_id).pk}
            found, links = (act(**of), {}) if description else read_page(request, act, **of)
            return Response(self.output(found, many=True).data, headers=links)

        response, problems = ("All of them.", ()) if description else ("A page.", (400,))
        return self._documented(f"list_{self.names}", summary, description or PAGE_DESCRIPTION)(
            parameters=[] if description else PAGE_PARAMETERS,
            extensions=self.links(200, f"/0/{self.id_field}"),
            responses=_responses(
                200,
                OpenApiResponse(self.output(many=True), response, [self._example(self.shown)]),
                *problems,
                *self.refusals,
            ),
        )(get)

    def create(
        self,
        act: Act,
        summary: str,
        description: str,
        *errors: PushsvcError,
        output: Output | None = None,
        shown: Example | None = None,
        once: Callable[[Request, Channel, Callable[[], Shown]], Shown] = _at_once,
        **schema: Any,
    ) -> Method:
        """`output`, `shown`: for a new thing, if they differ. `once` calls the function that it
        gets, unless the request was repeated. `schema`: more of the API's document."""
        made, reader = output or self.output, self.reader or self.input

        def post(view: KeyedView, request: Request, channel_id: UUID) -> Response:
            channel, given = own_channel(request, channel_id), reader.checked(request.data)
            created = once(request, channel, lambda: dict(made(act(channel=channel, **given)).data))
            return Response(created, status=201)

        schema = {"examples": [self._example(self.given, is_request=True)]} | schema
        return self._documented(f"create_{self.name}", summary, description)(
            request=self.input,
            extensions=self.links(201, f"/{self.id_field}"),
            responses=_responses(
                201,
                OpenApiResponse(made, "Created.", [self._example(shown or self.shown)]),
                *self._problems(errors),
            ),
            **schema,
        )(post)

    def read(
        self,
        act: Act,
        summary: str,
        description: str,
        *,
        part: str = "",
        output: Output | None = None,
        example: OpenApiExample | None = None,
    ) -> Method:
        """`part`, `output`, `example`: for something about the thing, such as its `size`."""
        operation_id = f"get_{self.name}_{part}" if part else f"get_{self.name}"
        read = output or self.output

        def get(view: KeyedView, request: Request, channel_id: UUID, **path: Any) -> Response:
            channel = own_channel(request, channel_id)
            return Response(read(act(channel_id=channel.pk, **path)).data)

        found = OpenApiResponse(read, "Found.", [example or self._example(self.shown)])
        return self._documented(operation_id, summary, description)(
            parameters=[*self.parameters],
            responses=_responses(200, found, 404, *self.refusals),
        )(get)

    def update(
        self,
        act: Act,
        summary: str,
        description: str,
        *errors: PushsvcError,
        input: type[StrictSerializer] | None = None,
        given: Example | None = None,
    ) -> Method:
        """`input`, `given`: what can be changed, if that is not all."""
        fields = input or self.input
        reader = input or self.reader or self.input

        def put(view: KeyedView, request: Request, channel_id: UUID, **path: Any) -> Response:
            channel, values = own_channel(request, channel_id), reader.checked(request.data)
            return Response(self.output(act(channel_id=channel.pk, **path, **values)).data)

        return self._documented(f"update_{self.name}", summary, description)(
            parameters=[*self.parameters],
            request=fields,
            examples=[self._example(given or self.given, is_request=True)],
            responses=_responses(
                200,
                OpenApiResponse(self.output, "Changed.", [self._example(self.shown)]),
                *self._problems(errors, 404),
            ),
        )(put)

    def delete(
        self,
        act: Act,
        summary: str,
        description: str,
        *errors: PushsvcError,
        operation: str = "delete",
        status: int = 204,
    ) -> Method:
        """`status` 202: for what takes a while."""

        def delete(view: KeyedView, request: Request, channel_id: UUID, **path: Any) -> Response:
            act(channel_id=own_channel(request, channel_id).pk, **path)
            return Response(status=status)

        done = f"{operation.capitalize()}d." if status == 204 else f"It will be {operation}d."
        return self._documented(f"{operation}_{self.name}", summary, description)(
            parameters=[*self.parameters],
            responses=_responses(
                status, OpenApiResponse(description=done), 404, *self.refusals, *errors
            ),
        )(delete)

    @property
    def refusals(self) -> tuple[Problem, ...]:
        """The errors of every request with an API key."""
        return (401, MissingScope(self.scope), ChannelNotFound(), 429, 503)

    def links(self, status: int, path: str) -> dict[str, Any]:
        """`path`: of the id in the body of the response."""
        place = {self.id_name: f"$response.body#{path}", "channel_id": "$request.path.channel_id"}
        return follow_ups(status, *self.follow_ups, **place)

    def _documented(
        self, operation_id: str, summary: str, description: str
    ) -> Callable[..., Callable[[Method], Method]]:
        return partial(
            extend_schema,
            operation_id=operation_id,
            summary=summary,
            description=description,
            tags=[self.tag],
        )

    def _problems(self, errors: Sequence[PushsvcError], *more: Problem) -> Sequence[Problem]:
        """For a method that reads a body."""
        invalid: list[Problem] = [each for each in errors if each.status == 400]
        others = [each for each in errors if each.status != 400]
        return [*(invalid or [400]), *more, *self.refusals, *others, 413, 415]

    def _example(self, value: Example, *, is_request: bool = False) -> OpenApiExample:
        article = "An" if self.name[0] in "aeiou" else "A"
        name = f"{article} {self.name.replace('_', ' ')}"
        return OpenApiExample(name, value, request_only=is_request, response_only=not is_request)


def _responses(status: int, response: OpenApiResponse, *problems: Problem) -> dict[Any, Any]:
    return {status: response, **problem_responses(*problems)}

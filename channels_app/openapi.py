"""The API key and the channel's id in the OpenAPI document, for the views of all apps."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiParameter
from typing_extensions import override

from channels_app.http import ApiKeyAuthentication

# A text, because clients of openapi-python-client cannot send a UUID as a header.
_ID = {"type": "string", "pattern": "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"}
CHANNEL_ID_HEADER = OpenApiParameter(
    "X-Channel-ID", _ID, OpenApiParameter.HEADER, required=True, description="The channel's id."
)


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = ApiKeyAuthentication
    name = "ApiKey"

    @override
    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": "The word `Key`, a space and the API key: `Key psk_…`.",
        }

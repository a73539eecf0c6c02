"""Writes the parts of the clients that docs/openapi.yaml determines.

`make openapi` runs it for clients/; `make lint` runs it for another directory and compares.
"""

import keyword
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).resolve().parents[1]
Schema = dict[str, Any]
PYTHON_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
OWN_PARAMETERS = {"channel_id", "X-Channel-ID"}  # the client knows its channel
PAGE_PARAMETERS = {"limit"}
ROWS = "application/x-ndjson"  # of exports, whose schema is that of a line
METHODS = {"get", "post", "put", "patch", "delete"}


class Document:
    def __init__(self, text: str) -> None:
        document = yaml.load(text, yaml.CSafeLoader)
        self.schemas: dict[str, Schema] = document["components"]["schemas"]
        self.operations = [
            Operation(path, method, operation)
            for path, operations in document["paths"].items()
            for method, operation in operations.items()
            if method in METHODS and is_json(operation)
        ]

    @cached_property
    def inputs(self) -> set[str]:
        """The names of the schemas that requests have."""
        names: set[str] = set()
        new = {name for each in self.operations for name in references(each.body_schema)}
        while new:
            names |= new
            new = {each for name in new for each in references(self.schemas[name])} - names
        return names


def is_json(operation: dict[str, Any]) -> bool:
    """The import of files is written by hand: client.py and index.js."""
    return "application/json" in operation.get("requestBody", {}).get(
        "content", ["application/json"]
    )


def has_fields(schema: Schema) -> bool:
    return "properties" in schema


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if "$ref" in node:
            yield name_of(node)
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from references(each)


def name_of(reference: Schema) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def about(description: str) -> str:
    """Without what is said of the pages of lists, which the clients read."""
    sentences = re.split(r"(?<=\.) (?=[A-Z])", description)
    return " ".join(each for each in sentences if not ("`limit`" in each or "`Link`" in each))


class Parameter(NamedTuple):
    name: str
    schema: Schema
    is_required: bool


class Operation:
    def __init__(self, path: str, method: str, operation: dict[str, Any]) -> None:
        self.path = path
        self.method = method.upper()
        self.id = str(operation["operationId"])
        self.about = [f"{operation['summary']}.", about(operation.get("description", ""))]
        self._parameters = operation.get("parameters", [])
        self._body = operation.get("requestBody", {}).get("content", {})
        self._responses: dict[str, Any] = operation["responses"]

    def _in(self, place: str) -> list[Parameter]:
        return [
            Parameter(each["name"], each["schema"], each.get("required", False))
            for each in self._parameters
            if each["in"] == place and each["name"] not in self._fixed
        ]

    @property
    def _fixed(self) -> set[str]:
        """Parameters that the client sets. Of exports it reads the rows, never CSV."""
        return OWN_PARAMETERS | {"format"} if self.is_export else OWN_PARAMETERS

    @property
    def places(self) -> list[str]:
        """The names in the path, in its order."""
        return [name for name in re.findall(r"{(\w+)}", self.path) if name not in OWN_PARAMETERS]

    @property
    def query(self) -> list[Parameter]:
        return sorted(self._in("query"), key=lambda each: not each.is_required)

    @property
    def has_idempotency_key(self) -> bool:
        return any(each.name == "Idempotency-Key" for each in self._in("header"))

    @property
    def body_schema(self) -> Schema | None:
        return self._body["application/json"]["schema"] if self._body else None

    @property
    def body(self) -> str | None:
        return name_of(self.body_schema) if self.body_schema else None

    @property
    def answer(self) -> Schema | None:
        """None: a redirection, or nothing."""
        if self.is_export:
            return {"type": "array", "items": self._content[ROWS]["schema"]}
        return self._content["application/json"]["schema"] if self._content else None

    @property
    def _content(self) -> dict[str, Any]:
        usual = min(status for status in self._responses if status < "400")
        content: dict[str, Any] = self._responses[usual].get("content", {})
        return content

    @property
    def is_export(self) -> bool:
        return ROWS in self._content

    @property
    def is_redirection(self) -> bool:
        return "302" in self._responses

    @property
    def is_listing(self) -> bool:
        return any(each.name == "limit" for each in self.query)

    @property
    def largest_page(self) -> int:
        """Of an export, whose pages are as large as can be unless less is requested."""
        return next(int(each.schema["default"]) for each in self.query if each.name == "limit")

    @property
    def is_repeatable(self) -> bool:
        """Whether a repeat does what one request does. What only creates would create two."""
        creates = self.method == "POST" and "201" in self._responses
        return not creates or "200" in self._responses or self.has_idempotency_key


# --- Python ---------------------------------------------------------------------------------------


class Python:
    def __init__(self, document: Document) -> None:
        self._document = document

    def schemas(self) -> Iterator[str]:
        yield '"""The shapes of the API, by the names that docs/openapi.yaml has.\n'
        yield "`make openapi` writes this module. In answers, times are ISO 8601 texts in UTC."
        yield '"""'
        yield "from __future__ import annotations"
        yield "from datetime import datetime"
        yield "from typing import Any, Literal, NotRequired, TypeAlias, TypedDict"
        for name, schema in self._document.schemas.items():
            if has_fields(schema):
                yield from self._shape(name)
        for name in self._aliases():
            of = self.type(self._document.schemas[name], name in self._document.inputs)
            yield f"{name}: TypeAlias = {of}"

    def _aliases(self) -> list[str]:
        """The names of the shapes without fields, each after those that it refers to."""
        ordered: list[str] = []
        left = [name for name, schema in self._document.schemas.items() if not has_fields(schema)]
        while left:
            ready = [
                name
                for name in left
                if set(left).isdisjoint(references(self._document.schemas[name]))
            ]
            ordered += ready
            left = [name for name in left if name not in ready]
        return ordered

    def _shape(self, name: str) -> Iterator[str]:
        schema, is_input = self._document.schemas[name], name in self._document.inputs
        required = schema.get("required", [])
        fields = {
            field: annotated if field in required else f"NotRequired[{annotated}]"
            for field, shape in schema["properties"].items()
            for annotated in [self.type(shape, is_input)]
        }
        if any(keyword.iskeyword(field) for field in fields):
            pairs = ", ".join(f'"{field}": "{of}"' for field, of in fields.items())
            yield f'{name} = TypedDict("{name}", {{{pairs}}})'
            return
        yield f"class {name}(TypedDict):"
        yield docstring([schema["description"]], 4)
        yield from (f"    {field}: {of}" for field, of in fields.items())

    def type(self, schema: Schema, is_input: bool) -> str:
        options = schema.get("oneOf") or schema.get("anyOf") or schema.get("allOf")
        is_nullable = schema.get("nullable", False)
        if "$ref" in schema:
            written = name_of(schema)
            shape = self._document.schemas[written]
            is_nullable = is_nullable or (has_fields(shape) and shape.get("nullable", False))
        elif options:
            each_of = [self.type(each, is_input) for each in options]
            is_nullable = is_nullable or any(each.endswith(" | None") for each in each_of)
            written = " | ".join(dict.fromkeys(each.removesuffix(" | None") for each in each_of))
        elif "enum" in schema:
            written = f"Literal[{', '.join(repr(each) for each in schema['enum'])}]"
        elif schema.get("format") == "date-time":
            written = "datetime | str" if is_input else "str"
        elif schema["type"] == "array":
            written = f"list[{self.type(schema['items'], is_input)}]"
        elif schema["type"] == "object":
            values = schema.get("additionalProperties")
            of = self.type(values, is_input) if isinstance(values, dict) and values else "Any"
            written = f"dict[str, {of}]"
        else:
            written = PYTHON_TYPES[schema["type"]]
        return f"{written} | None" if is_nullable else written

    def operations(self) -> Iterator[str]:
        operations = self._document.operations
        answers = {name for each in operations for name in references(each.answer)}
        queries = {name for each in operations for p in each.query for name in references(p.schema)}
        bodies = {each.body for each in operations if each.body}
        yield '"""A method for each operation of docs/openapi.yaml. `make openapi` writes this."""'
        yield "from datetime import datetime"
        yield "from typing import Literal, Unpack"
        yield "from pushsvc_client.calls import Call, Pages, new_key, part"
        yield "from pushsvc_client.running import listing, operation"
        yield f"from pushsvc_client.schemas import {', '.join(sorted(answers | queries | bodies))}"
        yield "class Operations:"
        yield "    channel: str"
        for each in sorted(operations, key=lambda each: each.id):
            yield from self._method(each)

    def _method(self, operation: Operation) -> Iterator[str]:
        arguments = [f"{name}: str" for name in operation.places]
        arguments = ["self", *arguments, "/"] if arguments or operation.body else ["self"]
        named = [*self._queried(operation)]
        if operation.has_idempotency_key:
            named.append("idempotency_key: str | None = None")
        arguments += ["*", *named] if named else []
        arguments += [f"**fields: Unpack[{operation.body}]"] if operation.body else []
        yield "    @listing" if operation.is_listing else "    @operation"
        answer = self._answer(operation)
        yield f"    def {operation.id}({', '.join(arguments)}) -> {answer}:"
        yield docstring(operation.about, 8)
        yield from (f"        {line}" for line in self._body(operation))

    def _queried(self, operation: Operation) -> Iterator[str]:
        for name, schema, is_required in operation.query:
            of = self.type(schema, is_input=True)
            argument = python_name(name)
            yield f"{argument}: {of}" if is_required else f"{argument}: {of} | None = None"

    def _answer(self, operation: Operation) -> str:
        if operation.is_redirection:
            return "Call[str]"
        if operation.answer is None:
            return "Call[None]"
        if operation.is_listing:
            return f"Pages[{self.type(operation.answer['items'], is_input=False)}]"
        return f"Call[{self.type(operation.answer, is_input=False)}]"

    def _body(self, operation: Operation) -> Iterator[str]:
        path = operation.path.replace("{channel_id}", "{part(self.channel)}")
        for name in operation.places:
            path = path.replace(f"{{{name}}}", f"{{part({name})}}")
        arguments = [f'f"{path}"' if "{" in path else f'"{path}"']
        names = [each.name for each in operation.query if each.name not in PAGE_PARAMETERS]
        query = ", ".join(f'"{name}": {python_name(name)}' for name in names)
        if operation.is_listing:
            size = [str(operation.largest_page)] if operation.is_export else []
            yield f"return Pages({', '.join([arguments[0], f'{{{query}}}', 'limit', *size])})"
            return
        arguments.insert(0, f'"{operation.method}"')
        arguments += ["json=fields"] if operation.body else []
        arguments += [f"params={{{query}}}"] if query else []
        if operation.has_idempotency_key:
            arguments += ['headers={"Idempotency-Key": idempotency_key or new_key()}']
        arguments += [] if operation.is_repeatable else ["is_repeatable=False"]
        yield f"return Call({', '.join(arguments)})"


def python_name(name: str) -> str:
    """Of an argument: `from_` for `from`, which is a keyword."""
    return f"{name}_" if keyword.iskeyword(name) else name


def wrapped(paragraphs: list[str], width: int) -> list[str]:
    return [
        textwrap.fill(each.strip(), width, break_long_words=False, break_on_hyphens=False)
        for each in paragraphs
        if each.strip()
    ]


def docstring(paragraphs: list[str], indent: int) -> str:
    told = wrapped(paragraphs, 92 - indent)
    text = textwrap.indent("\n\n".join(told), " " * indent).lstrip()
    end = f"\n{' ' * indent}" if len(told) > 1 or "\n" in text else ""
    return f'{" " * indent}"""{text}{end}"""'


def formatted(lines: Iterator[str]) -> str:
    """As `make format` does it, without the names that are imported in vain."""
    text = "\n".join(lines)
    for command in ("check --select F401,I --fix-only --quiet", "format"):
        ruff = [sys.executable, "-m", "ruff", *command.split(), "--stdin-filename", "code.py", "-"]
        text = subprocess.run(
            ruff, input=text, capture_output=True, text=True, check=True, cwd=ROOT
        ).stdout
    return text


# --- TypeScript -----------------------------------------------------------------------------------


def camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.capitalize() for each in others)


class TypeScript:
    """Methods in JavaScript, whose types are those of schema.d.ts."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def operations(self) -> Iterator[str]:
        yield "// A method for each operation of docs/openapi.yaml. `make openapi` writes this."
        yield 'import { Calls, path } from "./calls.js";'
        yield ""
        yield '/** @typedef {import("./schema.d.ts").operations} Operations */'
        yield '/** @typedef {import("./schema.d.ts").components["schemas"]} Schemas */'
        yield "/**"
        yield " * @template {keyof Operations} Name"
        yield ' * @typedef {NonNullable<Operations[Name]["parameters"]["query"]>} Query'
        yield " */"
        yield ""
        yield "export class Methods extends Calls {"
        for number, each in enumerate(sorted(self._document.operations, key=lambda each: each.id)):
            if number:
                yield ""
            yield from self._method(each)
        yield "}"

    def _method(self, operation: Operation) -> Iterator[str]:
        arguments = [(camel(name), "string", "") for name in operation.places]
        if operation.query:
            is_optional = not any(each.is_required for each in operation.query)
            of = f'Query<"{operation.id}">'
            of = f'Omit<{of}, "format">' if operation.is_export else of
            arguments.append(("query", of, "{}" if is_optional else ""))
        if operation.body:
            arguments.append(("body", f'Schemas["{operation.body}"]', ""))
        if operation.has_idempotency_key:
            arguments.append(("options", "{idempotencyKey?: string}", "{}"))
        yield "  /**"
        yield from ("   * " + line if line else "   *" for line in self._about(operation))
        yield "   *"
        for name, of, default in arguments:
            yield f"   * @param {{{of}}} {f'[{name}]' if default else name}"
        yield f"   * @returns {{{self._answer(operation)}}}"
        yield "   */"
        given = [f"{name} = {default}" if default else name for name, _, default in arguments]
        yield f"  {camel(operation.id)}({', '.join(given)}) {{"
        yield f"    {self._return(operation)}"
        yield "  }"

    def _about(self, operation: Operation) -> list[str]:
        return "\n\n".join(wrapped(operation.about, 92)).split("\n")

    def _answer(self, operation: Operation) -> str:
        if operation.is_redirection:
            return "Promise<string>"
        if operation.answer is None:
            return "Promise<void>"
        if operation.is_listing:
            return f"AsyncGenerator<{self._type(operation.answer['items'])}, void, void>"
        return f"Promise<{self._type(operation.answer)}>"

    def _type(self, schema: Schema) -> str:
        if schema.get("type") == "array":
            return f"{self._type(schema['items'])}[]"
        return f'Schemas["{name_of(schema)}"]'

    def _return(self, operation: Operation) -> str:
        path = operation.path.replace("{channel_id}", "${this.channel}")
        for name in operation.places:
            path = path.replace(f"{{{name}}}", f"${{{camel(name)}}}")
        written = f"path`{path}`" if "$" in path else f'"{path}"'
        if operation.is_listing:
            size = f", {operation.largest_page}" if operation.is_export else ""
            return f"return this.pages({written}, query{size});"
        options = ["body"] if operation.body else []
        options += ["query"] if operation.query else []
        if operation.has_idempotency_key:
            options.append("idempotencyKey: options.idempotencyKey ?? crypto.randomUUID()")
        elif operation.method in {"POST", "PATCH"} and operation.is_repeatable:
            options.append("isRepeatable: true")
        more = f", {{ {', '.join(options)} }}" if options else ""
        return f'return this.request("{operation.method}", {written}{more});'


def main(directory: str) -> int:
    document = Document((ROOT / "docs" / "openapi.yaml").read_text(encoding="utf-8"))
    python, typescript = Python(document), TypeScript(document)
    files = {
        "python/pushsvc_client/schemas.py": formatted(python.schemas()),
        "python/pushsvc_client/operations.py": formatted(python.operations()),
        "typescript/operations.js": "\n".join(typescript.operations()) + "\n",
    }
    for name, text in files.items():
        path = Path(directory) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

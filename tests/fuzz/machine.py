"""Flows of requests that the OpenAPI document allows. Each answer is compared with the document.

An error does not end a flow. All errors are collected, so that a frequent one hides no other.
"""

from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import FlakyStrategyDefinition
from hypothesis.stateful import rule
from schemathesis.core.failures import FailureGroup
from schemathesis.generation.stateful.state_machine import StepInput

from tests.api.document import CHECKS
from tests.fuzz.cast import likely_body

# Ids in the answers to these, for later requests.
_TOLD = {
    "send_notification": "notification_id",
    "create_segment": "segment_id",
    "create_template": "template_id",
    "create_schedule": "schedule_id",
    "create_automation": "automation_id",
    "create_newsfeed": "newsfeed_id",
    "create_identity_key": "identity_key_id",
    "create_webhook": "webhook_id",
}
_FLOWS = 10
_STEPS = 20


@dataclass
class Tally:
    """Requests and their answers. `errors`: each error once, with its first case."""

    answers: dict[str, Counter] = field(default_factory=lambda: defaultdict(Counter))
    errors: dict[str, str] = field(default_factory=dict)
    error_count: int = 0

    @property
    def cases(self) -> int:
        return sum(sum(counted.values()) for counted in self.answers.values())

    def add_error(self, operation: str, words: str, case: str) -> None:
        self.error_count += 1
        self.errors.setdefault(f"{operation}: {words}", case)

    def report(self) -> str:
        lines = [f"{self.cases} cases, {self.error_count} errors"]
        for operation, counted in sorted(self.answers.items()):
            statuses = ", ".join(f"{status} {count}" for status, count in sorted(counted.items()))
            lines.append(f"  {operation}: {sum(counted.values())} ({statuses})")
        return "\n".join(lines)


def machine_of(schema, cast, tally, between=lambda: None):
    """The state machine of schemathesis, with requests of our own choice among its links.
    `between` is called after each flow."""
    operations = [found.ok() for found in schema.get_all_operations()]
    for operation in operations:
        for parameter in operation.path_parameters:
            cast.one_of(parameter.name)  # a short run may not call each
    # The first is drawn most often.
    operations.sort(key=lambda each: (each.path != "/send-notification", each.method != "post"))

    class Flow(schema.as_state_machine()):  # type: ignore[misc]
        @rule(data=st.data())
        def call_any(self, data):
            """Reaches operations that no link leads to; mostly with known ids."""
            case = data.draw(data.draw(st.sampled_from(operations)).as_strategy())
            for name in case.path_parameters:
                if cast.mostly(0.9):
                    case.path_parameters[name] = cast.one_of(name)
            self.recorder.record_case(case=case)
            self.step(StepInput.initial(case))

        def before_call(self, case):
            if "channel_id" in case.path_parameters and cast.mostly(0.95):
                case.path_parameters["channel_id"] = cast.one_of("channel_id")
            if isinstance(case.body, dict):
                case.body = likely_body(cast, _id_of(case), case.body, _examples_of(case))

        def get_call_kwargs(self, case):
            return {"headers": cast.headers()}

        def after_call(self, response, case):
            super().after_call(response, case)
            tally.answers[case.operation.label][response.status_code] += 1
            name = _TOLD.get(_id_of(case))
            if name and response.status_code in {201, 202}:
                cast.learn(name, response.json()[name])

        def validate_response(self, response, case, additional_checks=None, **kwargs):
            try:
                case.validate_response(response, checks=list(CHECKS), transport_kwargs=kwargs)
            except FailureGroup as group:
                for failure in group.exceptions:
                    words = f"{failure.title}: {failure.message}"
                    curl = case.as_curl_command(headers=kwargs["headers"])
                    body = response.content[:2_000].decode("utf-8", "replace")
                    told = f"{curl}\n{response.status_code} {body}"
                    tally.add_error(case.operation.label, words, told)

        def teardown(self):
            super().teardown()
            between()

    return Flow


def run(machine, *, number):
    """Some flows of `machine`; each number gives other flows."""
    seed(number)(machine)
    # What may follow depends on answers, and these did differ.
    with suppress(FlakyStrategyDefinition):
        machine.run(
            settings=settings(
                max_examples=_FLOWS,
                stateful_step_count=_STEPS,
                phases=[Phase.generate],
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            )
        )


def _examples_of(case):
    content = case.operation.definition.raw.get("requestBody", {}).get("content", {})
    examples = content.get("application/json", {}).get("examples", {})
    return [each["value"] for each in examples.values()]


def _id_of(case):
    return case.operation.definition.raw["operationId"]

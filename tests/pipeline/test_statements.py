"""`manage.py statements`: each statement of the pipeline, whole."""

import pytest
from django.core.management import CommandError, call_command

from notifications_app.pipeline.statements import statements

NAMES = list(statements())


def test_the_names_are_listed(capsys):
    call_command("statements")
    assert capsys.readouterr().out.splitlines() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_postgresql_can_explain_a_statement_as_it_is_printed(name, capsys, db):
    call_command("statements", name)
    assert capsys.readouterr().out.strip() == statements()[name].text.strip()
    call_command("statements", name, "--explain")
    assert "cost=" in capsys.readouterr().out


def test_an_unknown_name_is_an_error():
    with pytest.raises(CommandError, match="There is no statement 'claim'"):
        call_command("statements", "claim")

"""PostgreSQL accepts the SQL of the documents."""

import re

import pytest
from django.conf import settings
from django.db import connection


def blocks():
    for page in sorted((settings.BASE_DIR / "docs").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        for match in re.finditer(r"```sql\n(.*?)```", text, re.DOTALL):
            line = text.count("\n", 0, match.start()) + 1
            yield pytest.param(match[1], id=f"{page.name}:{line}")


@pytest.mark.parametrize("statements", list(blocks()))
@pytest.mark.django_db
def test_the_sql_of_the_documents_runs(statements):
    in_a_transaction = statements.replace(" CONCURRENTLY", "")

    with connection.cursor() as cursor:
        cursor.execute(in_a_transaction)

        assert cursor.statusmessage

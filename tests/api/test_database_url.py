"""DATABASE_URL, as Django and libpq get it."""

import pytest

from pushsvc.common import database_url

SERVERS = [
    ("postgresql:///pushsvc", "", ""),
    ("postgresql:///pushsvc?host=/run/postgresql", "/run/postgresql", ""),
    ("postgresql://%2Frun%2Fpostgresql/pushsvc", "/run/postgresql", ""),
    ("postgresql://shop:5ecret@db.example.com/pushsvc", "db.example.com", ""),
    ("postgres://shop:5ecret@[::1]:6432/pushsvc", "::1", "6432"),
    ("postgresql://shop:a,b@one.example:6001,two:6002/x", "one.example,two", "6001,6002"),
    ("postgresql://one.example:6001,two/x", "one.example,two", "6001,"),
    ("postgresql://one.example,two.example/x", "one.example,two.example", ""),
]


@pytest.mark.parametrize(("url", "host", "port"), SERVERS)
def test_the_url_names_one_server_or_several(url, host, port):
    database = database_url.parsed(database_url.checked(url), is_kept=True)

    assert (database["HOST"], database["PORT"]) == (host, port)


def test_options_are_libpqs_and_take_precedence_over_ours():
    url = "postgresql://shop:5%40cret@one,two/x?target_session_attrs=read-write&connect_timeout=9"
    database = database_url.parsed(url, is_kept=False)

    assert (database["NAME"], database["USER"], database["PASSWORD"]) == ("x", "shop", "5@cret")
    assert database["OPTIONS"]["target_session_attrs"] == "read-write"
    assert database["OPTIONS"]["connect_timeout"] == "9"


@pytest.mark.parametrize(
    "url",
    [
        "mysql://host/x",
        "postgresql://host",
        "postgresql://one:6001,two:many/x",
        "postgresql://h:x/d",
    ],
)
def test_another_url_is_refused(url):
    with pytest.raises(ValueError, match=r"Port|://"):
        database_url.checked(url)

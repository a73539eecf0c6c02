"""Documents of RSS and Atom as they are in the wild, without a network and a database."""

import codecs
import tracemalloc
from datetime import UTC, datetime
from urllib.parse import urljoin

import pytest

from notifications_app.newsfeeds import comparing, reading
from notifications_app.newsfeeds.comparing import compared, values_of
from notifications_app.newsfeeds.plain_text import text_of
from notifications_app.newsfeeds.reading import MOST_ENTRIES, NotAFeed, entries_of

URL = "https://news.example/feed/"


def read(document, **given):
    body = document.encode() if isinstance(document, str) else document
    return entries_of(body, **{"url": URL, **given})


def values(document, **given):
    return values_of(read(document, **given)[0])


def item(inner, root='<rss version="2.0">'):
    return f"{root}<channel><title>Site</title><item>{inner}</item></channel></rss>"


# --- kinds ----------------------------------------------------------------------------------------


def test_rss_091_with_a_doctype():
    found = values(
        '<?xml version="1.0"?><!DOCTYPE rss PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN"'
        ' "http://my.netscape.com/publish/formats/rss-0.91.dtd"><rss version="0.91"><channel>'
        "<title>Site</title><link>https://news.example/</link><image><url>x.png</url></image>"
        "<item><title>One</title><link>https://news.example/1</link></item></channel></rss>"
    )
    assert (found["title"], found["link"], found["image"]) == ("One", "https://news.example/1", "")


def test_rss_20_of_wordpress():
    document = item(
        "<title>One &amp;#8211; two</title><link>https://news.example/one/</link>"
        "<dc:creator><![CDATA[Ann]]></dc:creator><category><![CDATA[City]]></category>"
        "<category>Traffic</category><pubDate>Thu, 03 Dec 2026 08:00:00 +0100</pubDate>"
        '<guid isPermaLink="false">https://news.example/?p=1</guid>'
        "<description><![CDATA[<p>First &hellip;</p>]]></description>"
        '<content:encoded><![CDATA[<p><img class="a" src="/i.jpg?w=1&#038;h=2"></p>]]>'
        "</content:encoded>"
    )
    (entry,) = read(document)
    assert entry.guid == "https://news.example/?p=1"
    assert values_of(entry) == {
        "title": "One \N{EN DASH} two",
        "summary": "First \N{HORIZONTAL ELLIPSIS}",
        "link": "https://news.example/one/",
        "image": "https://news.example/i.jpg?w=1&h=2",
        "author": "Ann",
        "categories": "City, Traffic",
        "published": "2026-12-03T07:00:00.000Z",
    }


def test_rss_10_in_rdf():
    found = read(
        '<rdf:RDF xmlns:rdf="x"><channel rdf:about="y"><title>Site</title></channel>'
        '<item rdf:about="https://news.example/1"><title>One</title>'
        "<link>https://news.example/1</link><dc:date>2026-12-03T08:00:00Z</dc:date></item></rdf:RDF>"
    )
    assert [(each.guid, each.title) for each in found] == [("https://news.example/1", "One")]
    assert found[0].published == datetime(2026, 12, 3, 8, tzinfo=UTC)


ATOM = """<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xml:base="https://atom.example/blog/">
<title>Site</title><link href="https://atom.example/"/>
<entry><id>urn:1</id><title type="html">A &lt;b&gt;b&lt;/b&gt;</title>
<link rel="self" href="self"/><link rel="alternate" type="text/html" href="../1"/>
<author><name>Ann</name><email>ann@atom.example</email></author>
<category term="city" label="City"/>
<updated>2026-12-04T08:00:00Z</updated><published>2026-12-03T08:00:00+01:00</published>
<summary type="xhtml"><div xmlns="x"><p>1 &lt; 2</p><p>two</p><img src="a.png"/></div></summary>
<source><title>Other</title><id>urn:other</id></source></entry>
<entry><title>1 &lt; 2 &lt;b&gt;</title></entry></feed>"""


def test_atom():
    first, second = read(ATOM)
    assert values_of(first) == {
        "title": "A b",
        "summary": "1 < 2 two",
        "link": "https://atom.example/1",
        "image": "https://atom.example/blog/a.png",
        "author": "Ann",
        "categories": "City",
        "published": "2026-12-03T07:00:00.000Z",
    }
    assert first.guid == "urn:1"
    assert values_of(second)["title"] == "1 < 2 <b>"  # text, not HTML


def test_atom_with_a_prefix():
    prefixed = ATOM.replace("<", "<atom:").replace("<atom:/", "</atom:")
    prefixed = prefixed.replace("<atom:?", "<?").replace("xmlns=", "xmlns:atom=")
    assert values(prefixed)["title"] == "A b"


@pytest.mark.parametrize(
    "inner",
    [
        '<enclosure url="/i.jpg" type="image/jpeg" length="1"/>',
        '<media:content url="/i.jpg" medium="image"/>',
        '<media:group><media:content url="/i.jpg" type="image/png"/></media:group>',
        '<media:thumbnail url="/i.jpg"/>',
        '<itunes:image href="/i.jpg"/>',
        "<image><url>/i.jpg</url></image>",
        '<description>&lt;img src="/i.jpg"&gt;</description>',
        "<description><p>Not escaped <img src='/i.jpg'/></p></description>",
    ],
)
def test_images(inner):
    found = values(item(f'<enclosure url="/a.mp3" type="audio/mpeg"/>{inner}'))
    assert found["image"] == "https://news.example/i.jpg"


def test_a_guid_that_is_a_permalink_is_the_link():
    assert values(item("<guid>https://news.example/1</guid>"))["link"] == "https://news.example/1"
    no = '<guid isPermaLink="false">https://news.example/1</guid>'
    assert values(item(no))["link"] == ""


# --- faults ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "document",
    [
        item("<title>a & b</title>"),
        item("<title>a &amp; b</title>"),
        item("<title>a&nbsp;&amp; b</title>"),
        item("<title>a &\x01 b\x00</title>"),
        item("<title>a &amp; b&#0;&#xffff;</title>"),
        item("<title><![CDATA[a & b]]></title>"),
        "\n  \ufeff " + item("<title>a &amp; b</title>"),
        '\n<?xml version="1.0" encoding="utf-8"?>' + item("<title>a &amp; b</title>"),
        "PHP Warning: x " + item("<title>a &amp; b</title>"),
        item("<title>a &amp; b</title></item><item><title>cut &"),
        item("<title>a &amp; b</title></item><item><wrong></item>"),
        item("<TITLE>a &amp; b</TITLE><x:unknown/>"),
    ],
)
def test_faults_that_are_frequent_are_repaired(document):
    assert values(document)["title"] == "a & b"


UMLAUTS = item("<title>Gr\u00fc\u00dfe \u20ac</title>")


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (UMLAUTS.encode(), ""),
        (codecs.BOM_UTF8 + UMLAUTS.encode(), "text/xml; charset=iso-8859-1"),
        (codecs.BOM_UTF16_LE + UMLAUTS.encode("utf-16-le"), ""),
        (codecs.BOM_UTF16_BE + UMLAUTS.encode("utf-16-be"), ""),
        (UMLAUTS.encode("cp1252"), "text/xml; charset=windows-1252"),
        (UMLAUTS.encode("cp1252"), "text/xml; charset=utf-8"),  # wrong
        (UMLAUTS.encode("cp1252"), "text/xml; charset=no-such"),
        (b'<?xml version="1.0" encoding="ISO-8859-1"?>' + UMLAUTS.encode("cp1252"), ""),
        (b'<?xml version="1.0" encoding="utf-7"?>' + UMLAUTS.encode(), ""),
        (b'<?xml version="1.0" encoding="ascii"?>' + UMLAUTS.encode(), ""),
    ],
)
def test_encodings(body, content_type):
    found = values(body, content_type=content_type)["title"]
    expected = "Gr\u00fc\u00dfe \u20ac"
    if b'"ascii"' in body:  # as declared, which all browsers read as Windows-1252
        expected = expected.encode().decode("cp1252")
    assert found == expected


@pytest.mark.parametrize(
    "declared",
    [
        "".join(f'<!ENTITY l{at + 1} "{f"&l{at};" * 10}">' for at in range(9)),
        '<!ENTITY a SYSTEM "file:///etc/passwd">',
        '<!ENTITY % a SYSTEM "http://127.0.0.1/x.dtd"> %a;',
    ],
)
def test_declared_entities_are_refused(declared):
    with pytest.raises(NotAFeed, match="entities"):
        read(f"<!DOCTYPE rss [{declared}]>{item('<title>&l9;&a;</title>')}")


def test_what_follows_the_bounds_is_not_read():
    many = "<item><title>x</title></item>" * (MOST_ENTRIES + 5)
    assert len(read(f"<rss><channel>{many}</channel></rss>")) == MOST_ENTRIES
    with pytest.raises(NotAFeed, match="no entry at its beginning"):
        read("<rss>" + "<a>" * 100_000)


def test_hashes_that_are_stored_stay_those_of_their_entries():
    """Or every entry of every newsfeed would be new after an update."""
    found = read(
        "<rss><channel><item><guid>1</guid><title>One</title>"
        "<link>https://news.example/1?a=b&amp;utm_x=c#d</link></item>"
        "<item><title>Two</title><link>https://news.example/</link></item>"
        "<item><title>Three</title><link>http://news.example</link></item></channel></rss>"
    )
    now = datetime(2026, 12, 3, tzinfo=UTC)
    id_, link, *texts = (
        -5328788738567319054,
        6643433593448212031,
        -4284964362266078333,
        -4071766761214635924,
    )
    for known in ([id_, *texts], [link, *texts]):
        assert compared(found, known, now, most=5).new == []
    assert [each["title"] for each in compared(found, [id_], now, most=5).new] == ["Two", "Three"]


BASE = "https://news.example/"
LINKS = "".join(f"<item><title>t</title><link>{number}</link></item>" for number in range(500))


def with_base(base, inner):
    return f'<rss xml:base="{base}"><channel>{inner}</channel></rss>'


def test_a_base_that_is_too_long_is_none_and_is_not_copied_into_each_link():
    tracemalloc.start()
    try:
        found = read(with_base(BASE + "a" * 200_000 + "/", LINKS))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20_000_000
    assert found[1].link == URL + "1"


@pytest.mark.parametrize("base", [URL, BASE + "a" * 3_000 + "/"])
def test_a_link_that_is_too_long_is_none(base):
    long = "b" * 1_500
    links = f"<item><title>t</title><link>{long}</link><media:thumbnail url='{long * 3}'/></item>"
    entry = read(with_base(base, links))[0]
    assert entry.link == (URL + long if base == URL else "")
    assert entry.image == ""


def test_the_joins_of_a_document_are_bounded_in_number_and_length(monkeypatch):
    joined = []

    def join(base, link):
        joined.append(len(base) + len(link))
        return urljoin(base, link)

    monkeypatch.setattr(reading, "urljoin", join)
    inner = "<item><title>first</title></item>" + "<a xml:base='b'/>" * 60_000
    assert [each.title for each in read(with_base(BASE + "a/" * 1_900, inner))] == ["first"]
    assert sum(joined) < 5_000_000
    joined.clear()
    assert [each.title for each in read(with_base(BASE, inner))] == ["first"]
    assert len(joined) < 50_000


def test_usual_bases_of_each_element_are_within_the_bounds():
    parts = "".join(
        f'<entry xml:base="https://news.example/{number}/"><title xml:base="/">t</title>'
        '<link href="a"/><content type="html" xml:base="/">c</content>'
        '<media:thumbnail url="b.jpg"/></entry>'
        for number in range(MOST_ENTRIES)
    )
    found = read(f'<feed xml:base="https://news.example/">{parts}</feed>')
    assert [each.link for each in found] == [f"{BASE}{at}/a" for at in range(MOST_ENTRIES)]


def declaring(number):
    names = " ".join(f"a{each} CDATA 'x'" for each in range(number))
    return f"<!DOCTYPE rss [<!ATTLIST link href CDATA '/x'><!ATTLIST item {names}>]>" + item(
        "<title>a &amp; b</title><link>y</link>"
    )


def test_defaults_of_attributes_are_not_read_and_many_are_refused():
    """Each element of the name would have a copy of them."""
    assert values(declaring(99))["link"] == URL + "y"
    with pytest.raises(NotAFeed, match="declares over 100 attributes"):
        read(declaring(100))


def test_a_link_with_many_parameters_is_compared_as_it_is(monkeypatch):
    encoded = []
    monkeypatch.setattr(comparing, "urlencode", lambda query: encoded.append(len(query)) or "")
    now = datetime(2026, 12, 3, tzinfo=UTC)
    for number in (100, 101):
        link = "?" + "&amp;".join("a" * number)
        compared(read(item(f"<title>t</title><link>{link}</link>")), None, now, most=5)
    assert encoded == [100]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>a</p><p>b</p>", "a b"),
        ("a<br>b<b>c</b>", "a bc"),
        ("<script>x</script>a<style>y</STYLE>b", "a b"),
        ("a<!-- x <b> -->b", "ab"),
        ("1 < 2 &amp;&lt;b&gt;", "1 < 2 &<b>"),
        ("if x<y", "if x<y"),
        ("<a href='1'", "<a href='1'"),
        ("\u202ea\u0000\n\tb", "a b"),
        ("<img src=x onerror=alert(1)>", ""),
    ],
)
def test_text_of_html(html, text):
    assert text_of(html) == text
